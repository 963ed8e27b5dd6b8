/** `POST /reports/NAME` makes a report. While one request makes it, others get 409 instead. */
import { setTimeout as sleep } from "node:timers/promises";
import { AcquireTimeoutError } from "holdfast";
import { holdfast } from "../../../lib/holdfast.js";

/** What Next.js passes to the handler of a dynamic route. */
interface Context {
  readonly params: Promise<{ readonly name: string }>;
}

// `run` releases the lock before the response is sent, so a platform may freeze the process afterwards.
export async function POST(_request: Request, { params }: Context): Promise<Response> {
  const { name } = await params;
  try {
    const report = await holdfast.mutex(`report:${name}`).run(({ signal }) => make(name, signal), { waitMs: 0 });
    return Response.json(report);
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
    return Response.json({ error: "the report is being made" }, { status: 409, headers: { "retry-after": "1" } });
  }
}

/** Stands for work that takes a while. The signal aborts if the lock is lost. */
async function make(name: string, signal: AbortSignal): Promise<{ report: string }> {
  await sleep(50, undefined, { signal });
  return { report: name };
}
