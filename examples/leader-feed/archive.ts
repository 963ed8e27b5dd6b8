/** Stores the items of the feed: each item once, and none from a former leader. */
export class Archive {
  readonly items: { readonly item: number; readonly term: number }[] = [];
  #highestTerm = 0;

  /** The number of the next item. */
  get position(): number {
    return this.items.length;
  }

  /** Stores an item. Returns false if there is a newer leader, or if the item is not the next one. */
  add(item: number, term: number): boolean {
    if (term < this.#highestTerm) return false;
    this.#highestTerm = term;
    if (item !== this.position) return false;
    this.items.push({ item, term });
    return true;
  }
}
