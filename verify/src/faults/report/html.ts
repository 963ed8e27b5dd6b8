/** HTML templates that escape every value unless it is markup itself. */

/** HTML that needs no escaping. */
export class Html {
  readonly text: string;

  /** @param text  used without escaping */
  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

type Value = Html | string | number | readonly Html[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Template tag: keeps the markup and escapes the values. Attribute values must be quoted. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.reduce((text, part, index) => text + markupOf(values[index - 1] ?? "") + part));
}

function markupOf(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value === "string" || typeof value === "number")
    return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
  return value.map(({ text }) => text).join("\n");
}

/** An SVG as an `img` element, so that its styles do not affect the page. */
export function image(svg: string, description: string): Html {
  const data = Buffer.from(svg, "utf8").toString("base64");
  return html`<img src="data:image/svg+xml;base64,${data}" alt="${description}">`;
}
