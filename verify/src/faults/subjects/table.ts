/** All libraries that the fault runs can test. Each is loaded on demand, so a broken one does not affect the others. */
import { buildOf, subjectOfBuild } from "../liveness/build.js";
import type { Subject } from "../subject.js";
import { PEERS } from "./peers.js";

/** The exports of a module of this folder. */
interface SubjectModule {
  readonly subject: Subject;
}

const MODULES: Readonly<Record<string, () => Promise<SubjectModule>>> = {
  holdfast: () => import("./holdfast.js"),
  ...PEERS,
};

/** The names of the libraries, Holdfast first. */
export const SUBJECT_NAMES: readonly string[] = Object.keys(MODULES);

/** The library with this name. @throws RangeError  unknown name */
export async function subjectOf(name: string): Promise<Subject> {
  const build = buildOf(name);
  if (build !== undefined) return { ...(await subjectOf("holdfast")), ...keptBuild(build) };
  const load = Object.hasOwn(MODULES, name) ? MODULES[name] : undefined;
  if (load === undefined) throw new RangeError(`there is no subject ${name}; there are ${SUBJECT_NAMES.join(", ")}`);
  return (await load()).subject;
}

/** A stored build; only the liveness cells can run it. @throws RangeError  unknown build */
function keptBuild(build: string): Pick<Subject, "name" | "version" | "settings"> {
  const settings = "a stored build, in the liveness cells only, with its defaults";
  return { name: subjectOfBuild(build), version: build, settings };
}
