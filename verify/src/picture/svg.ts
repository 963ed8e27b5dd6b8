/** Attributes of an element; numbers are rounded to a tenth of a pixel, so that a picture is the same everywhere. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes text for an element or an attribute. */
export function escapeXml(text: string): string {
  return Array.from(text, (character) => (isXml(character) ? (ENTITIES[character] ?? character) : "\ufffd")).join("");
}

/** XML does not allow control characters and lone surrogates, not even escaped. */
function isXml(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return code === 0x09 || code === 0x0a || code === 0x0d;
  return code < 0xd800 || (code > 0xdfff && code !== 0xfffe && code !== 0xffff);
}

/** An element; its content must already be SVG. */
export function element(name: string, attributes: Attributes, ...content: readonly string[]): string {
  const text = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${escapeXml(typeof value === "number" ? String(round(value)) : (value ?? ""))}"`)
    .join("");
  return content.length === 0 ? `<${name}${text}/>` : `<${name}${text}>${content.join("")}</${name}>`;
}

/** A line of text. */
export function label(text: string, attributes: Attributes): string {
  return element("text", attributes, escapeXml(text));
}

/** A tooltip for the element that contains it. */
export function tooltip(text: string): string {
  return element("title", {}, escapeXml(text));
}

/** The approximate width of a string in the monospaced font, close enough to keep labels apart. */
export function widthOf(text: string): number {
  return Array.from(text).length * 6.7;
}

/** Shortens a string to this width, with an ellipsis at the cut. */
export function fit(text: string, width: number): string {
  const characters = Array.from(text);
  const most = Math.max(1, Math.floor(width / 6.7));
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
