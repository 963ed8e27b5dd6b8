/** What stands for an error in a label: a code if it has one, since names are shared by many errors; never its message. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
