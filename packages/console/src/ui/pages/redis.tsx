/** The Redis page: servers, latency, and the doctor's findings. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DoctorAnswer, FindingView, GraceView, NodeView, RedisAnswer } from "../../api.js";
import { announce } from "../announce.js";
import { bytes, count, duration } from "../format.js";
import { known } from "../live.js";
import { StateMark } from "../parts/icons.js";
import { LatencyChart } from "../parts/latency-chart.js";
import { Loading } from "../parts/loading.js";
import { At, Countdown, Maybe, None, Outside, Since } from "../parts/words.js";
import { get, post, RequestError } from "../requests.js";
import { useStore } from "../store.js";
import { doctorSummary } from "../summary.js";

/** The page. */
export function RedisPage(): JSX.Element {
  const { redis } = useStore(known);
  if (redis === undefined) return <Loading what="state of Redis" />;
  return (
    <>
      <div class="page-head">
        <h1>Redis</h1>
        <p class="count">
          {redis.topology} · <Outside text={redis.store.address} isCode /> · prefix{" "}
          <Outside text={redis.prefix} isCode />
        </p>
      </div>
      {redis.grace !== null && <Grace grace={redis.grace} isOnly={redis.nodes.length === 1} />}
      <section>
        <h2>Round trip</h2>
        <LatencyChart samples={redis.latency} />
      </section>
      <Nodes redis={redis} />
      {redis.hasDoctor && <Doctor />}
    </>
  );
}

/** The quiet time of a server. `isOnly`: there are no other servers. */
function Grace({ grace, isOnly }: { readonly grace: GraceView; readonly isOnly: boolean }): JSX.Element {
  return (
    <p class="explain warn">
      <strong>
        {isOnly
          ? "Quiet time: no new locks are granted until it ends."
          : "A server is in its quiet time, and grants no new locks until it ends."}
      </strong>{" "}
      <Outside text={grace.cause} />{" "}
      {grace.sinceAtMs !== null && (
        <>
          Since <At atMs={grace.sinceAtMs} />;{" "}
        </>
      )}
      ends in <Countdown atMs={grace.untilAtMs} />.
    </p>
  );
}

function Nodes({ redis }: { readonly redis: RedisAnswer }): JSX.Element {
  return (
    <section>
      <h2>{redis.hasServerFacts ? count(redis.nodes.length, "server") : "Servers"}</h2>
      {redis.hasServerFacts ? (
        <div class="cards">
          {redis.nodes.map((node) => (
            <Node key={node.address} node={node} />
          ))}
        </div>
      ) : (
        <p class="note">
          This console cannot show the servers, because it was mounted without <code>servers</code>.
        </p>
      )}
    </section>
  );
}

function Node({ node }: { readonly node: NodeView }): JSX.Element {
  const { usedMemoryBytes: used, maxMemoryBytes: max } = node;
  return (
    <div class="card">
      <h3>
        <Outside text={node.address} isCode /> <span class="role">{node.role}</span>
      </h3>
      <dl class="facts">
        <dt>Version</dt>
        <dd>
          <Maybe text={node.version} />
        </dd>
        <dt>Uptime</dt>
        <dd>{node.uptimeMs === null ? <None /> : duration(node.uptimeMs)}</dd>
        <dt>Memory</dt>
        <dd>
          {used === null ? <None /> : bytes(used)}
          {max !== null && max > 0 && ` of ${bytes(max)}`}
          {max === 0 && ", no limit"}
        </dd>
        <dt>Policy</dt>
        <dd>
          <Maybe text={node.policy} />
        </dd>
        <dt>Connections</dt>
        <dd>{node.connectedClients ?? <None />}</dd>
        <dt>Clock</dt>
        <dd>{node.clockSkewMs === null ? <None /> : skewText(node.clockSkewMs)}</dd>
        <dt>Replicas</dt>
        <dd>
          {node.replicas.length === 0 && <None />}
          {node.replicas.map(({ address, state, lagMs }) => (
            <div key={address}>
              <Outside text={address} isCode /> {state}
              {lagMs !== null && `, ${duration(lagMs)} behind`}
            </div>
          ))}
        </dd>
      </dl>
    </div>
  );
}

function skewText(skewMs: number): string {
  if (Math.abs(skewMs) < 5) return "same as the console's";
  return `${duration(Math.abs(skewMs))} ${skewMs > 0 ? "ahead of" : "behind"} the console's`;
}

/** Polling interval while the doctor runs, possibly for another visitor. */
const ASK_AGAIN_MS = 2_000;

function Doctor(): JSX.Element {
  const [answer, setAnswer] = useState<DoctorAnswer | undefined>();
  const [isAsked, setAsked] = useState(false);
  const [isForbidden, setForbidden] = useState(false);
  const isRunning = isAsked || answer?.isRunning === true;
  useEffect(() => {
    let isOver = false;
    const ask = (): void => {
      get<DoctorAnswer>("api/doctor").then(
        (next) => isOver || setAnswer(next),
        // The top bar already shows when the server does not reply.
        (error: unknown) => isOver || setForbidden(error instanceof RequestError && error.problem?.status === 403),
      );
    };
    ask();
    const timer = answer?.isRunning === true ? setInterval(ask, ASK_AGAIN_MS) : undefined;
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [answer?.isRunning]);
  const run = async (): Promise<void> => {
    setAsked(true);
    try {
      setAnswer(await post<DoctorAnswer>("api/doctor", {}));
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    } finally {
      setAsked(false);
    }
  };
  if (isForbidden)
    return (
      <section>
        <h2>Doctor</h2>
        <p class="note">You may not see the doctor's findings.</p>
      </section>
    );
  const { text, findings, fine } = doctorSummary(answer?.checks ?? []);
  return (
    <section>
      <div class="card-head">
        <h2>Doctor</h2>
        <button type="button" disabled={isRunning} onClick={() => void run()}>
          {isRunning ? "Running …" : "Run the doctor"}
        </button>
      </div>
      {answer === undefined ? (
        <Loading what="doctor's last findings" />
      ) : answer.ranAtMs === null ? (
        <p class="note">
          Not run since the console started. On each server, it writes and deletes one probe key, loads scripts, and
          publishes to one channel.
        </p>
      ) : (
        <>
          <p class="note">
            <Since atMs={answer.ranAtMs} /> ago: {text}
          </p>
          <ul class="findings">
            {findings.map((finding) => (
              <Finding key={`${finding.id} ${finding.node}`} finding={finding} />
            ))}
          </ul>
          {fine.length > 0 && <p class="note">No findings: {fine.join(", ")}</p>}
        </>
      )}
    </section>
  );
}

function Finding({ finding }: { readonly finding: FindingView }): JSX.Element {
  const { id, node, severity, status, measured, risk, fix } = finding;
  const word = status === "unknown" ? "unknown" : severity;
  return (
    <li class={`finding ${status === "unknown" ? "unknown" : severity}`}>
      <p class="finding-head">
        <StateMark shape={status === "unknown" || severity === "info" ? "free" : "trouble"} />
        <strong>{word}</strong> <span class="code">{id}</span> <Outside text={node} isCode />
      </p>
      <p>
        <Outside text={measured} />
      </p>
      {risk !== null && risk !== "" && (
        <p class="muted">
          <Outside text={risk} />
        </p>
      )}
      {fix !== null && fix !== "" && (
        <p>
          <span class="muted">Fix: </span>
          <Outside text={fix} />
        </p>
      )}
    </li>
  );
}
