/** Possible deadlocks: who holds and waits for which lock, and which one to release. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DeadlockClaimView, DeadlocksAnswer, DeadlockView, LockRow } from "../../api.js";
import { liveness } from "../live.js";
import { get } from "../requests.js";
import { mayDeadlock, partialText, releaseCommand, topologyText } from "../summary.js";
import { Copyable } from "./copy.js";
import { lockHref, Outside, Since, Who } from "./words.js";

const ASK_AGAIN_MS = 10_000;

/**
 * The section; null if all locks were searched and there is no possible deadlock. `isCut`: there are more locks than
 * `rows`.
 */
export function Deadlocks({ rows, isCut }: DeadlocksProps): JSX.Element | null {
  const { deadlocks: found, isComplete } = useDeadlocks(isCut || mayDeadlock(rows));
  const partial = isComplete ? undefined : partialText(found.length);
  if (found.length === 0) return partial === undefined ? null : <p class="note">{partial}</p>;
  return (
    <section class="explain warn" aria-labelledby="deadlocks-title">
      <h2 id="deadlocks-title">{found.length === 1 ? "Possible deadlock" : `${found.length} possible deadlocks`}</h2>
      {found.map((deadlock) => (
        <Cycle key={deadlock.members[0]?.holds.owner} deadlock={deadlock} />
      ))}
      {partial !== undefined && <p>{partial}</p>}
    </section>
  );
}

interface DeadlocksProps {
  readonly rows: readonly LockRow[];
  readonly isCut: boolean;
}

function Cycle({ deadlock: { members, sinceAtMs } }: { readonly deadlock: DeadlockView }): JSX.Element {
  const victim = members[0]?.holds;
  const topology = victim === undefined ? undefined : topologyText(victim);
  const command = victim === undefined ? undefined : releaseCommand(victim, victim.token);
  return (
    <>
      <p>
        {members.length} clients wait for each other
        {sinceAtMs !== null && (
          <>
            {" "}
            for <Since atMs={sinceAtMs} />
          </>
        )}
        :
      </p>
      <ul>
        {members.map(({ holds, waits, ...who }) => (
          <li key={holds.owner}>
            <Who client={who} /> holds <Claim claim={holds} /> and waits for <Claim claim={waits} />
          </li>
        ))}
      </ul>
      {victim !== undefined && (
        <p>
          To end it, release <Claim claim={victim} />, whose holder has held it for the shortest time.
          {command !== undefined && (
            <>
              {" "}
              From a shell: <Copyable value={command} noun="command" />
            </>
          )}
          {topology !== undefined && ` ${topology}`}
        </p>
      )}
    </>
  );
}

function Claim({ claim }: { readonly claim: DeadlockClaimView }): JSX.Element {
  const { name, kind, label } = claim;
  return (
    <>
      <a href={lockHref(claim)}>
        <Outside text={name} isCode />
      </a>{" "}
      ({kind}
      {label !== null && label !== "" && (
        <>
          , <Outside text={label} />
        </>
      )}
      )
    </>
  );
}

type Found = Pick<DeadlocksAnswer, "deadlocks" | "isComplete">;

/** The state before the first search: there is nothing to show. */
const NONE: Found = { deadlocks: [], isComplete: true };

/** Loads deadlocks only while they are possible. */
function useDeadlocks(isPossible: boolean): Found {
  const [found, setFound] = useState<Found>(NONE);
  useEffect(() => {
    if (!isPossible) {
      setFound(NONE);
      return undefined;
    }
    let isOver = false;
    const ask = (): void => {
      if (liveness.value === "stopped" || document.hidden) return;
      get<DeadlocksAnswer>("api/deadlocks").then(
        (answer) => isOver || setFound(answer),
        () => undefined, // the top bar already shows when the server does not reply
      );
    };
    ask();
    const again = setInterval(ask, ASK_AGAIN_MS);
    return () => {
      isOver = true;
      clearInterval(again);
    };
  }, [isPossible]);
  return found;
}
