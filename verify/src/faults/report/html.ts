/** Text of a page, in which whatever is put is escaped unless it is text of a page itself. */

/** Markup. */
export class Html {
  readonly text: string;

  /** @param text  taken as it is */
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

/** A template: markup as written, values escaped. Attributes have to be quoted. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.reduce((text, part, index) => text + markupOf(values[index - 1] ?? "") + part));
}

function markupOf(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value === "string" || typeof value === "number")
    return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
  return value.map(({ text }) => text).join("\n");
}

/** An SVG as an image in the page: what it says of styles stays in it. */
export function image(svg: string, description: string): Html {
  const data = Buffer.from(svg, "utf8").toString("base64");
  return html`<img src="data:image/svg+xml;base64,${data}" alt="${description}">`;
}
