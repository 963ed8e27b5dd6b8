/** Where the items of the feed end up: it takes each of them once, and nothing from a leader of the past. */
export class Archive {
  readonly items: { readonly item: number; readonly term: number }[] = [];
  #highestTerm = 0;

  /** Where the feed is to be continued. */
  get position(): number {
    return this.items.length;
  }

  /** False if the leader has been succeeded, or somebody was faster. */
  add(item: number, term: number): boolean {
    if (term < this.#highestTerm) return false;
    this.#highestTerm = term;
    if (item !== this.position) return false;
    this.items.push({ item, term });
    return true;
  }
}
