/**
 * Which page is shown, kept in the fragment of the address: `#/lock?kind=mutex&name=deploy%3Aprod`.
 *
 * The fragment reaches no access log, so names of locks stay here, and one document serves all pages under any base path. Filter
 * and sort are part of it, so that an address can be handed to a colleague.
 */
import { Store } from "./store.js";

/** The pages. */
export const PAGES = ["locks", "lock", "clients", "semaphores", "elections", "once", "history", "redis"] as const;
/** One of them. */
export type PageName = (typeof PAGES)[number];
/** What stands behind the page: `name`, `kind`, `filter`, `sort` and so on. What is empty or undefined is left out. */
export type Params = Readonly<Record<string, string | undefined>>;

/** A page and what it shows. */
export interface Route {
  readonly page: PageName;
  readonly params: Params;
}

/** Reads a fragment; an unknown page is the first one. */
export function parseRoute(hash: string): Route {
  const [, page = "", query = ""] = /^#\/([a-z]+)(?:\?(.*))?$/s.exec(hash) ?? [];
  return {
    page: PAGES.find((name) => name === page) ?? "locks",
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The relative address of a page. */
export function hrefOf(page: PageName, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (value !== undefined && value !== "") query.set(key, value);
  return query.size === 0 ? `#/${page}` : `#/${page}?${query.toString()}`;
}

/** The page that is shown. */
export const route: Store<Route> = new Store(parseRoute(location.hash));

/** Goes to another page; the browser's back button comes back to this one, where it was scrolled. */
export function go(page: PageName, params: Params = {}): void {
  keepScroll();
  history.pushState({ scrollY: 0 }, "", hrefOf(page, params));
  arrive(0);
}

/** Changes parameters of this page in place, as a filter does with each letter. */
export function amend(params: Params): void {
  const { page, params: before } = route.value;
  history.replaceState(history.state, "", hrefOf(page, { ...before, ...params }));
  route.set(parseRoute(location.hash));
}

/** To be called once: listens to back and forward, and to a fragment that was typed. */
export function listenToHistory(): void {
  history.scrollRestoration = "manual";
  addEventListener("popstate", ({ state }: PopStateEvent) => arrive(Number(state?.scrollY ?? 0)));
  addEventListener("scrollend", keepScroll);
}

/** Scrolls there when the page has been drawn, since before that it may be too short. */
export function scrollSoon(toY: number): void {
  requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, toY)));
}

function keepScroll(): void {
  history.replaceState({ scrollY }, "");
}

function arrive(scrollToY: number): void {
  route.set(parseRoute(location.hash));
  scrollSoon(scrollToY);
}
