/** All libraries that can be driven. Each is loaded when it is asked for, so that one that is broken breaks no other. */
import { buildOf, subjectOfBuild } from "../liveness/build.js";
import type { Subject } from "../subject.js";
import { PEERS } from "./peers.js";

/** What a module of this folder exports. */
interface SubjectModule {
  readonly subject: Subject;
}

const MODULES: Readonly<Record<string, () => Promise<SubjectModule>>> = {
  holdfast: () => import("./holdfast.js"),
  ...PEERS,
};

/** Their names; this library first. */
export const SUBJECT_NAMES: readonly string[] = Object.keys(MODULES);

/** The library of that name. @throws RangeError  there is none */
export async function subjectOf(name: string): Promise<Subject> {
  const build = buildOf(name);
  if (build !== undefined) return { ...(await subjectOf("holdfast")), ...keptBuild(build) };
  const load = Object.hasOwn(MODULES, name) ? MODULES[name] : undefined;
  if (load === undefined) throw new RangeError(`there is no subject ${name}; there are ${SUBJECT_NAMES.join(", ")}`);
  return (await load()).subject;
}

/** A build that is kept, which only the liveness cells connect. @throws RangeError  it is not kept */
function keptBuild(build: string): Pick<Subject, "name" | "version" | "settings"> {
  const settings = "a build that is kept, in the liveness cells only, with its defaults";
  return { name: subjectOfBuild(build), version: build, settings };
}
