/** `holdfast run NAME -- command`: runs a command under a lock. */
import { SignalDesk } from "../../child/signals.js";
import type { Verb } from "../../frame/verb.js";
import { RUN_OPTIONS, runPlan } from "./flags.js";
import { usualLeaseMs } from "./lock-of.js";
import { Report } from "./report.js";
import { Session } from "./session.js";

const USAGE = `holdfast run NAME [flags] -- command [args]
holdfast run NAME [flags] -c STRING
holdfast run NAME [flags] --hold | --until-eof`;

/** The verb `run`. */
export const run: Verb = {
  name: "run",
  usage: USAGE,
  help: async () => (await import("./help.js")).RUN_HELP,
  options: RUN_OPTIONS,
  takesCommand: true,
  async run(call) {
    const { common, streams } = call;
    const plan = runPlan(call, await usualLeaseMs(common.protocol));
    const { name, isQuiet, statusFd } = plan;
    const report = new Report(streams, {
      name,
      isQuiet,
      statusFd,
      isJson: common.isJson,
      isVerbose: common.isVerbose,
    });
    const desk = new SignalDesk();
    try {
      return await new Session(call, plan, report, desk).carryOut();
    } finally {
      desk.close();
    }
  },
};
