/** Small components that all pages share. Untrusted values are always rendered as text, never as markup. */
import type { JSX } from "preact";
import type { LockId, LockRow, LockState } from "../../api.js";
import { plain } from "../../plain.js";
import { nowAtMs, useNow } from "../clock.js";
import { clockTime, count, iso, seconds, whole } from "../format.js";
import { hrefOf } from "../route.js";
import { type LockClient, whoText } from "../who.js";
import { StateMark, type StateShape } from "./icons.js";

/**
 * An untrusted name, label or value: without control characters, and isolated so that its writing direction does not
 * affect its surroundings.
 */
export function Outside({ text, isCode = false }: { readonly text: string; readonly isCode?: boolean }): JSX.Element {
  return <bdi class={isCode ? "outside code" : "outside"}>{plain(text)}</bdi>;
}

/** `ci-7/4211 api`, with the app styled differently. */
export function Who({ client }: { readonly client: LockClient }): JSX.Element {
  const { app } = client;
  return (
    <bdi class="who" title={whoText(client)}>
      {whoText({ ...client, app: null })}
      {app !== null && app !== "" && <span class="app"> {plain(app)}</span>}
    </bdi>
  );
}

/** The time since an instant, counting up, with the instant in the tooltip. */
export function Since({ atMs }: { readonly atMs: number | null }): JSX.Element {
  const now = useNow();
  if (atMs === null) return <None />;
  return (
    <time dateTime={iso(atMs)} title={iso(atMs)}>
      {seconds(now - atMs)}
    </time>
  );
}

/** The note that a client is gone (crashed or cut off), with when it was last seen; null if it is alive. */
export function Gone({ atMs }: { readonly atMs: number | null }): JSX.Element | null {
  if (atMs === null) return null;
  return (
    <span class="badge-warn">
      <StateMark shape="trouble" /> gone for <Since atMs={atMs} />{" "}
    </span>
  );
}

/** The time until an instant, counting down. */
export function Countdown({ atMs }: { readonly atMs: number }): JSX.Element {
  const now = useNow();
  return (
    <time dateTime={iso(atMs)} title={iso(atMs)}>
      {seconds(Math.max(0, atMs - now))}
    </time>
  );
}

/** An instant in the visitor's time zone. */
export function At({ atMs }: { readonly atMs: number | null }): JSX.Element {
  if (atMs === null) return <None />;
  return (
    <time dateTime={iso(atMs)} title={iso(atMs)}>
      {clockTime(atMs, nowAtMs())}
    </time>
  );
}

/** The dash for a value that is absent or unknown. */
export function None(): JSX.Element {
  return (
    <span class="none">
      <span aria-hidden="true">–</span>
      <span class="hidden">none</span>
    </span>
  );
}

/** A number that is dimmed if it is 0. */
export function Quantity({ n }: { readonly n: number }): JSX.Element {
  return <span class={n === 0 ? "none" : "strong"}>{whole(n)}</span>;
}

/** Text that may be absent. */
export function Maybe({ text }: { readonly text: string | null }): JSX.Element {
  return text === null || text === "" ? <None /> : <Outside text={text} />;
}

const SHAPES: Readonly<Record<LockState, StateShape>> = {
  held: "held",
  awaited: "waiting",
  paused: "paused",
  counting: "waiting",
  gathering: "waiting",
  broken: "trouble",
  free: "free",
};

/** The state of a lock as an icon with a label. */
export function LockMark({ state }: { readonly state: LockState }): JSX.Element {
  return <StateMark shape={SHAPES[state] ?? "free"} word={state} />;
}

/** A lock's name after its state icon. */
export function LockName({ row }: { readonly row: LockRow }): JSX.Element {
  return (
    <span class="lock-name" title={plain(row.name)}>
      <LockMark state={row.state} />
      <Outside text={row.name} isCode />
    </span>
  );
}

/** The holder cell of a lock: its holder, the number of holders, or who paused it. */
export function HolderCell({ row }: { readonly row: LockRow }): JSX.Element {
  const [first] = row.holders;
  if (first !== undefined && row.holderCount === 1)
    return (
      <>
        <Gone atMs={first.goneSinceAtMs} />
        <Who client={first} />
      </>
    );
  if (row.holderCount > 1)
    return (
      <span>
        {count(row.holderCount, "holder")}
        {row.goneCount > 0 && <span class="badge-warn">, {whole(row.goneCount)} gone</span>}
      </span>
    );
  if (row.pause !== null)
    return (
      <span class="paused-by">
        paused{row.pause.by !== null && " by "}
        {row.pause.by !== null && <Outside text={row.pause.by} />}
      </span>
    );
  if (row.count !== null) return <span>{`${whole(row.count.left)} of ${whole(row.count.initial)} left`}</span>;
  return <None />;
}

/** The link to the page of a lock. */
export function lockHref({ kind, name, key }: LockId): string {
  return hrefOf("lock", { kind, name, key: key ?? undefined });
}
