/** A part of a .lua file as the library sends it to the server: without indentation. */
export function asSent(part: string): string {
  return part.replace(/^ +/gm, "");
}
