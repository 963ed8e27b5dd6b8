/** The frame around every page: navigation, freshness of the data, and environment. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SessionAnswer, StoreView } from "../api.js";
import { plain } from "../plain.js";
import { close, open, openDialog } from "./actions.js";
import { announcement } from "./announce.js";
import { listenToKeys } from "./keyboard.js";
import type { Liveness } from "./known.js";
import { disconnect, follow, known, liveness, toggleStopped } from "./live.js";
import { ClientsPage } from "./pages/clients.js";
import { DownPage } from "./pages/down.js";
import { ElectionsPage } from "./pages/elections.js";
import { HelpDialog } from "./pages/help.js";
import { HistoryPage } from "./pages/history.js";
import { LockPage } from "./pages/lock.js";
import { LocksPage } from "./pages/locks.js";
import { OncePage } from "./pages/once.js";
import { RedisPage } from "./pages/redis.js";
import { SemaphoresPage } from "./pages/semaphores.js";
import { SignInPage } from "./pages/sign-in.js";
import { rowControl } from "./parts/row-control.js";
import { Outside } from "./parts/words.js";
import type { Subject } from "./polling.js";
import { post, refreshSession, session } from "./requests.js";
import { hrefOf, type PageName, type Route, route, scrollSoon } from "./route.js";
import { useStore } from "./store.js";
import { chooseTheme, chosenTheme, type Theme } from "./theme.js";

interface Page {
  readonly title: string;
  readonly Content: () => JSX.Element;
  readonly isInMenu: boolean;
}

const PAGES: Readonly<Record<PageName, Page>> = {
  locks: { title: "Locks", Content: LocksPage, isInMenu: true },
  lock: { title: "Lock", Content: LockPage, isInMenu: false },
  clients: { title: "Clients", Content: ClientsPage, isInMenu: true },
  semaphores: { title: "Semaphores", Content: SemaphoresPage, isInMenu: true },
  elections: { title: "Elections", Content: ElectionsPage, isInMenu: true },
  once: { title: "Once", Content: OncePage, isInMenu: true },
  history: { title: "History", Content: HistoryPage, isInMenu: true },
  redis: { title: "Redis", Content: RedisPage, isInMenu: true },
};

/** The root component. `trouble`: why signing in via the URL failed. */
export function App({ trouble }: { readonly trouble?: string | undefined }): JSX.Element {
  const who = useStore(session);
  if (who === undefined) return <Unreachable />;
  if (!who.isSignedIn && who.login === "token") return <SignInPage trouble={trouble} />;
  if (!who.isSignedIn)
    return (
      <main class="alone">You do not have access to this console. Sign in to the application that mounts it.</main>
    );
  return <Frame session={who} />;
}

/** Shown if the console's server did not reply to the first request. */
function Unreachable(): JSX.Element {
  useEffect(() => {
    const timer = setInterval(() => void refreshSession().catch(() => undefined), 2_000);
    return () => clearInterval(timer);
  }, []);
  return <main class="alone">The console does not reply yet. This page retries until it does.</main>;
}

function Frame({ session: who }: { readonly session: SessionAnswer }): JSX.Element {
  const { env, allow } = who;
  const here = useStore(route);
  const dialog = useStore(openDialog);
  const { store } = useStore(known);
  const page = PAGES[here.page];
  useFollowing(here);
  useKeys();
  useTitle(page.title, here, env?.name);
  const isDown = store?.state === "down";
  useScrollKept(isDown);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to content
      </button>
      <header class={`topbar ${env?.tone ?? "none"}`}>
        <a class="brand" href={hrefOf("locks")}>
          Holdfast
        </a>
        {env !== null && <strong class={`environment ${env.tone}`}>{env.name}</strong>}
        <Menu here={here.page} />
        <div class="tools">
          {allow.length === 0 && <span class="read-only">read-only</span>}
          <LiveMark />
          <More session={who} />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {isDown && <DownPage store={store as Extract<StoreView, { state: "down" }>} />}
        <div hidden={isDown} class={`page page-${here.page}`}>
          <page.Content key={here.page} />
        </div>
      </main>
      <Announcer />
      {dialog?.()}
    </>
  );
}

function Menu({ here }: { readonly here: PageName }): JSX.Element {
  const current = here === "lock" ? "locks" : here;
  return (
    <nav aria-label="Pages">
      {(Object.keys(PAGES) as PageName[])
        .filter((name) => PAGES[name].isInMenu)
        .map((name) => (
          <a key={name} href={hrefOf(name)} aria-current={name === current ? "page" : undefined}>
            {PAGES[name].title}
          </a>
        ))}
    </nav>
  );
}

const LIVE_WORDS: Readonly<Record<Liveness, readonly [word: string, meaning: string]>> = {
  connecting: ["connecting", "Connecting to the stream of changes"],
  loading: ["loading", "Reading what this page shows"],
  down: ["no Redis", "The console is up, but cannot use Redis. The console retries every few seconds"],
  live: ["live", "Changes appear as they happen. Click to stop"],
  polling: ["polling", "The stream is blocked: this page polls every 5 s instead"],
  offline: ["offline", "The console does not reply. This page retries every 5 s"],
  stopped: ["stopped", "Updates are stopped. Click to resume"],
};

function LiveMark(): JSX.Element {
  const state = useStore(liveness);
  const [word, meaning] = LIVE_WORDS[state];
  return (
    <button
      type="button"
      class={`live ${state}`}
      title={meaning}
      aria-pressed={state === "stopped"}
      onClick={toggleStopped}
    >
      <span class="dot" aria-hidden="true" />
      {word}
    </button>
  );
}

/** The menu with rarely used entries. The browser closes it with Esc or a click elsewhere. */
function More({ session: { login, who, version } }: { readonly session: SessionAnswer }): JSX.Element {
  return (
    <>
      <button type="button" class="quiet" popovertarget="more">
        Menu
      </button>
      <div id="more" popover="auto">
        {who !== null && (
          <p class="muted">
            Signed in as <Outside text={who} />
          </p>
        )}
        <ThemeChoice />
        <button
          type="button"
          popovertarget="more"
          popovertargetaction="hide"
          onClick={() => open(() => <HelpDialog />)}
        >
          Keys and filter
        </button>
        {login === "token" && (
          <button type="button" onClick={() => void signOut()}>
            Sign out
          </button>
        )}
        <p class="muted">Holdfast {version}</p>
      </div>
    </>
  );
}

function ThemeChoice(): JSX.Element {
  const [theme, setTheme] = useState<Theme>(chosenTheme);
  return (
    <label>
      Theme
      <select
        value={theme}
        onChange={({ currentTarget }) => {
          const chosen = currentTarget.value as Theme;
          chooseTheme(chosen);
          setTheme(chosen);
        }}
      >
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Announcer(): JSX.Element {
  const text = useStore(announcement);
  return (
    <div class={text === "" ? "announcer" : "announcer shown"} role="status" aria-live="polite">
      {text}
    </div>
  );
}

function useFollowing(here: Route): void {
  const { page, params } = here;
  const { kind, name, key } = params;
  useEffect(() => {
    follow(subjectOf(here));
  }, [page, page === "lock" && JSON.stringify([kind, name, key])]);
  useEffect(() => disconnect, []);
}

/**
 * What the page's stream follows. The history and `once` pages load their own data and use the stream only to know
 * whether Redis can be used.
 */
function subjectOf({ page, params: { kind, name, key } }: Route): Subject {
  if (page === "history" || page === "once") return { topics: [] };
  return page === "lock" ? { topics: ["lock"], kind, name, key } : { topics: [page] };
}

function useKeys(): void {
  useEffect(
    () =>
      listenToKeys({
        focusFilter: () => document.querySelector<HTMLInputElement>("[data-filter]")?.select(),
        moveRow: (step) => rowControl.value?.(step),
        togglePause: toggleStopped,
        showHelp: () => open(() => <HelpDialog />),
        escape: () => {
          close();
          if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
        },
      }),
    [],
  );
}

function useTitle(title: string, { page, params }: Route, environment: string | undefined): void {
  const what = page === "lock" ? plain(params.name ?? "") : title;
  useEffect(() => {
    document.title = `${environment === undefined ? "" : `[${environment}] `}${what} · Holdfast`;
  }, [what, environment]);
}

/** Restores the scroll position after Redis was down, because the hidden page makes the document shorter. */
function useScrollKept(isDown: boolean): void {
  const kept = useRef(0);
  const wasDown = useRef(false);
  if (isDown && !wasDown.current) kept.current = scrollY;
  useLayoutEffect(() => {
    if (wasDown.current && !isDown) scrollSoon(kept.current);
    wasDown.current = isDown;
  }, [isDown]);
}

async function signOut(): Promise<void> {
  disconnect();
  known.set({});
  try {
    await post("api/logout", {});
  } finally {
    await refreshSession();
  }
}
