import { checkKnown, show } from "holdfast/internal";
import { Counter, Gauge, register as globalRegister, Histogram, type Registry } from "prom-client";
import { COMMAND, COUNTERS, type Definition, GAUGES, type GaugeName, HISTOGRAMS } from "../definitions.js";
import { GROUP_OPTIONS, type GroupOptions } from "../groups.js";
import { LockMeter } from "../lock-meter.js";
import type { Labels } from "../sink.js";

/** Options of `startMetrics`: the registry, and how lock names become groups. */
export interface PrometheusOptions extends GroupOptions {
  /** The registry for the metrics. @default the global registry of `prom-client` */
  readonly register?: Registry | undefined;
}

const COMMAND_LABELS = ["script", "server_address", "server_port", "error_type"];

/**
 * Starts to measure all locks of this process. The names of the metrics begin with `holdfast_`.
 *
 * @returns a function that stops measuring and removes the metrics from the registry
 * @throws TypeError, RangeError  invalid option
 * @throws Error  the registry already has metrics with these names, for example because metrics were started twice
 */
export function startMetrics(options: PrometheusOptions = {}): () => void {
  const { register = globalRegister, ...groups } = checkKnown(options, ["register", ...GROUP_OPTIONS]);
  if (typeof register?.registerMetric !== "function") {
    throw new TypeError(`register must be a prom-client Registry; got ${show(register)}`);
  }
  const made: string[] = [];
  const about = (definition: Definition, ending: string): Described => {
    const name = `${definition.name.replaceAll(".", "_")}${definition.unit === "s" ? "_seconds" : ""}${ending}`;
    const own = definition.label === undefined ? [] : [definition.label];
    const labelNames = definition === COMMAND ? COMMAND_LABELS : ["group", "kind", "mode", ...own];
    return { name, help: definition.help, labelNames, registers: [register] };
  };
  const add = <Metric>(make: (described: Described) => Metric, definition: Definition, ending = ""): Metric => {
    const described = about(definition, ending);
    const metric = make(described);
    made.push(described.name);
    return metric;
  };
  const remove = (): void => {
    for (const name of made.splice(0)) register.removeSingleMetric(name);
  };

  try {
    const histograms = mapValues(HISTOGRAMS, (each) =>
      add((described) => new Histogram({ ...described, buckets: [...each.buckets] }), each),
    );
    const commands = add((described) => new Histogram({ ...described, buckets: [...COMMAND.buckets] }), COMMAND);
    const counters = mapValues(COUNTERS, (each) => add((described) => new Counter(described), each, "_total"));
    const meter = new LockMeter(
      {
        command: ({ script, server, errorType = "" }, seconds) => {
          const { host = "", port = "" } = server ?? {};
          commands.observe({ script, server_address: host, server_port: port, error_type: errorType }, seconds);
        },
        add: (name, labels, by, value) => counters[name].inc(labelled(COUNTERS[name], labels, value), by),
        record: (name, labels, seconds, value) =>
          histograms[name].observe(labelled(HISTOGRAMS[name], labels, value), seconds),
      },
      groups,
    );
    try {
      for (const name of Object.keys(GAUGES) as GaugeName[]) {
        const collect = function (this: Gauge): void {
          for (const [labels, value] of meter.read(name)) this.set(labelled(GAUGES[name], labels), value);
        };
        add((described) => new Gauge({ ...described, collect }), GAUGES[name]);
      }
    } catch (error) {
      meter.stop();
      throw error;
    }
    return () => {
      meter.stop();
      remove();
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Labels of one series. `mode` is empty, not absent, if the lock has none. */
function labelled({ label }: Definition, { group, kind, mode }: Labels, value?: string): Record<string, string> {
  return { group, kind, mode: mode ?? "", ...(label !== undefined && value !== undefined && { [label]: value }) };
}

interface Described {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
}

function mapValues<Key extends string, From, To>(
  from: Readonly<Record<Key, From>>,
  map: (value: From) => To,
): Readonly<Record<Key, To>> {
  const entries = Object.entries(from) as [Key, From][];
  return Object.fromEntries(entries.map(([key, value]) => [key, map(value)])) as Record<Key, To>;
}
