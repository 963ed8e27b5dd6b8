/** What happened, in a sentence: shown for a while, and read out by screen readers, without taking the focus. */
import { Store } from "./store.js";

/** The sentence to show; empty for none. */
export const announcement: Store<string> = new Store("");

const SHOWN_MS = 8_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows it in place of the one before. */
export function announce(sentence: string): void {
  announcement.set(sentence);
  clearTimeout(timer);
  timer = setTimeout(() => announcement.set(""), SHOWN_MS);
}
