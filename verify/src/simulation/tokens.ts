/** F1 and F2 for the tokens of one lock name. */
export class TokenOrder {
  readonly #seen = new Set<number>();
  /** The highest token that had been returned at each instant, oldest first. */
  readonly #highest: { readonly atMs: number; readonly token: number }[] = [];

  /** @returns what is wrong with a token that was returned at `returnMs` to a caller that called at `callMs` */
  granted(token: number, callMs: number, returnMs: number): { readonly property: string; readonly text: string }[] {
    const wrong: { readonly property: string; readonly text: string }[] = [];
    if (!Number.isSafeInteger(token)) wrong.push({ property: "F4", text: `token ${token} is not a safe integer` });
    if (this.#seen.has(token)) wrong.push({ property: "F1", text: `token ${token} was granted twice` });
    this.#seen.add(token);
    const before = this.#highest.findLast(({ atMs }) => atMs < callMs);
    if (before !== undefined && before.token >= token) {
      wrong.push({
        property: "F2",
        text: `token ${token} is not above ${before.token}, which had been returned before`,
      });
    }
    const top = this.#highest.at(-1);
    if (top === undefined || token > top.token) this.#highest.push({ atMs: returnMs, token });
    return wrong;
  }
}
