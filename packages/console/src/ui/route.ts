/**
 * The current page, stored in the fragment of the URL: `#/lock?kind=mutex&name=deploy%3Aprod`.
 *
 * Fragments are not sent to servers, so lock names stay out of access logs, and one document serves all pages under
 * any base path. Filter and sort order are included, so that a URL can be shared.
 */
import { Store } from "./store.js";

/** The pages. */
export const PAGES = ["locks", "lock", "clients", "semaphores", "elections", "once", "history", "redis"] as const;
/** The name of a page. */
export type PageName = (typeof PAGES)[number];
/** The parameters of a page: `name`, `kind`, `filter`, `sort` and so on. Empty and undefined ones are omitted. */
export type Params = Readonly<Record<string, string | undefined>>;

/** A page and its parameters. */
export interface Route {
  readonly page: PageName;
  readonly params: Params;
}

/** Parses a fragment; an unknown page becomes the first one. */
export function parseRoute(hash: string): Route {
  const [, page = "", query = ""] = /^#\/([a-z]+)(?:\?(.*))?$/s.exec(hash) ?? [];
  return {
    page: PAGES.find((name) => name === page) ?? "locks",
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The relative URL of a page. */
export function hrefOf(page: PageName, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (value !== undefined && value !== "") query.set(key, value);
  return query.size === 0 ? `#/${page}` : `#/${page}?${query.toString()}`;
}

/** The current page. */
export const route: Store<Route> = new Store(parseRoute(location.hash));

/** Goes to another page. The browser's back button returns to the current one at its scroll position. */
export function go(page: PageName, params: Params = {}): void {
  keepScroll();
  history.pushState({ scrollY: 0 }, "", hrefOf(page, params));
  arrive(0);
}

/** Changes parameters of the current page without a history entry, as while typing a filter. */
export function amend(params: Params): void {
  const { page, params: before } = route.value;
  history.replaceState(history.state, "", hrefOf(page, { ...before, ...params }));
  route.set(parseRoute(location.hash));
}

/** Starts to handle back, forward and edited fragments. Call it once. */
export function listenToHistory(): void {
  history.scrollRestoration = "manual";
  addEventListener("popstate", ({ state }: PopStateEvent) => arrive(Number(state?.scrollY ?? 0)));
  addEventListener("scrollend", keepScroll);
}

/** Scrolls after the page is rendered, because before that it may be too short. */
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
