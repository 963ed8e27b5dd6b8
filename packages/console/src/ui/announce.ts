/** Announcements: a sentence shown for a while, and read out by screen readers without moving the focus. */
import { Store } from "./store.js";

/** The sentence to show; empty for none. */
export const announcement: Store<string> = new Store("");

const SHOWN_MS = 8_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a sentence, replacing the previous one. */
export function announce(sentence: string): void {
  announcement.set(sentence);
  clearTimeout(timer);
  timer = setTimeout(() => announcement.set(""), SHOWN_MS);
}
