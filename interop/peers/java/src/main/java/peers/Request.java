package peers;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;

/** A request: a verb and its named values. Durations are in milliseconds. */
final class Request {
  private final JsonObject fields;

  Request(JsonObject fields) {
    this.fields = fields;
  }

  boolean has(String name) {
    return fields.has(name);
  }

  String text(String name) {
    JsonElement value = fields.get(name);
    if (value == null) {
      throw new IllegalArgumentException("the request has no " + name);
    }
    return value.getAsString();
  }

  String text(String name, String fallback) {
    return has(name) ? text(name) : fallback;
  }

  long number(String name) {
    return Long.parseLong(text(name));
  }

  long number(String name, long fallback) {
    return has(name) ? number(name) : fallback;
  }

  double decimal(String name) {
    return Double.parseDouble(text(name));
  }

  List<String> texts(String name) {
    List<String> values = new ArrayList<>();
    fields.getAsJsonArray(name).forEach(value -> values.add(value.getAsString()));
    return values;
  }
}
