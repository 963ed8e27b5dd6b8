/** Tests the command over TLS, with a server that requires a client certificate of its own authority. */
import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startTlsRedis, type TlsServer } from "../../../tests/support/tls-server.js";
import { type Ended, holdfast } from "./support/command.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let server: TlsServer;
let url: string;
let trusted: Record<string, string>;
beforeAll(async () => {
  server = await startTlsRedis("certified");
  url = `rediss://127.0.0.1:${server.tlsPort}`;
  trusted = {
    HOLDFAST_REDIS: url,
    HOLDFAST_TLS_CA: server.file("ca.crt"),
    HOLDFAST_TLS_CERT: server.file("client.crt"),
    HOLDFAST_TLS_KEY: server.file("client.key"),
  };
});
afterAll(() => server?.stop());

describe("over TLS", () => {
  it("run holds the lock while its command runs, with files from flags or from variables", async () => {
    const { HOLDFAST_TLS_CA = "", HOLDFAST_TLS_CERT = "", HOLDFAST_TLS_KEY = "" } = trusted;
    const files = ["--tls-ca", HOLDFAST_TLS_CA, "--tls-cert", HOLDFAST_TLS_CERT, "--tls-key", HOLDFAST_TLS_KEY];
    const flags = await holdfast(["run", "job", "-r", url, ...files, "--", "sh", "-c", "exit 7"]);
    expect([flags.code, flags.stderr]).toEqual([7, ""]);
    // During the run, another process reads the same lock over its own connection.
    const look = `${process.execPath} "$MAIN" show job --json`;
    const { MAIN } = await import("./support/command.js");
    const within = await holdfast(["run", "job", "-m", "by variables", "-c", look], { ...trusted, MAIN });
    expect(within.code).toBe(0);
    expect(JSON.parse(within.stdout)).toMatchObject({ state: "held", label: "by variables" });
  });

  it("doctor examines the server, and its own connections use TLS as well", async () => {
    const { code, stdout, stderr } = await holdfast(["doctor", "--json", "--for", "60s"], trusted);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { checks } = JSON.parse(stdout) as {
      checks: { id: string; node: string; status: string; measured: string }[];
    };
    expect(checks.find(({ id }) => id === "exposure")?.measured).toBe("no access without a certificate");
    expect(checks.filter(({ status }) => status === "unknown")).toEqual([]);
    const well = checks.filter(({ status }) => status === "ok").map(({ id }) => id);
    expect(well).toEqual(expect.arrayContaining(["acl", "scripts", "role", "clock-runs"]));
    // A slow machine may cause this warning.
    expect(checks.find(({ id }) => id === "pubsub")?.measured).toMatch(/ arrived after .*; 1 receiver counted/);
    expect(new Set(checks.map(({ node }) => node))).toEqual(new Set([url.replace("rediss://", "")]));
  });

  it("run exits with 69 if the client or the server does not trust the other, and ls with 64 if a file is missing", async () => {
    const { HOLDFAST_TLS_CA: _ca, ...withoutAuthority } = trusted;
    const { HOLDFAST_TLS_CERT: _cert, HOLDFAST_TLS_KEY: _key, ...withoutCertificate } = trusted;
    const words = ["run", "job", "-n", "--connect-timeout", "5s", "--", "true"];
    const ends: Record<string, Ended> = {
      authority: await holdfast(words, withoutAuthority),
      certificate: await holdfast(words, withoutCertificate),
      plain: await holdfast(words, { HOLDFAST_REDIS: url.replace("rediss", "redis") }),
    };
    for (const { code, stderr } of Object.values(ends)) {
      expect([code, stderr]).toEqual([
        69,
        expect.stringMatching(/^holdfast: Redis at .* could not be reached within 5s: /),
      ]);
    }
    expect(ends.authority?.stderr).toMatch(
      /certificate.*\(its certificate is from an unknown authority: --tls-ca\)\n$/,
    );
    expect(ends.certificate?.stderr).toMatch(/--tls-cert, --tls-key\)\n$/);
    expect(ends.plain?.stderr).not.toMatch(/--tls-cert/);
    for (const { stderr } of Object.values(ends)) expect(stderr.trimEnd()).not.toContain("\n");
    const missing = await holdfast(["ls"], { ...trusted, HOLDFAST_TLS_CA: server.file("none.crt") });
    expect([missing.code, missing.stderr]).toEqual([64, expect.stringContaining("--tls-ca cannot be read")]);
  });

  it("the error for a port without TLS mentions TLS, not certificates", async () => {
    const { HOLDFAST_TLS_CA = "" } = trusted;
    const env = { HOLDFAST_REDIS: `rediss://127.0.0.1:${server.server.port}`, HOLDFAST_TLS_CA };
    const { code, stderr } = await holdfast(["ls", "--connect-timeout", "2s"], env);
    expect(code).toBe(69);
    expect(stderr).toMatch(/: [^\n]* \((?:does that port speak TLS\?|that port does not speak TLS)[^\n]*\n$/);
  });

  it("unusable TLS flags are refused immediately with 64", async () => {
    const { file } = server;
    await writeFile(file("text"), "no PEM\n");
    const secure = ["-r", "rediss://127.0.0.1:1"];
    const client = ["--tls-cert", file("client.crt")];
    const cases: [words: string[], said: string][] = [
      [["-r", "redis://127.0.0.1:1", "--tls-ca", file("ca.crt")], "--tls-ca needs a URL that begins with rediss://"],
      [[...secure, ...client], "--tls-cert requires --tls-key"],
      [[...secure, "--tls-key", file("client.key")], "--tls-key requires --tls-cert"],
      [[...secure, ...client, "--tls-key", file("server.key")], "--tls-key must be the key of --tls-cert"],
      [[...secure, ...client, "--tls-key", file("text")], "--tls-key must be the key of --tls-cert"],
      [
        [...secure, "--tls-cert", file("text"), "--tls-key", file("client.key")],
        "--tls-cert must be a file with a certificate in PEM",
      ],
      [[...secure, "--tls-ca", file("text")], "--tls-ca must be a file with a certificate in PEM"],
      [[...secure, "--tls-ca", file("ca.key")], "--tls-ca must be a file with a certificate in PEM"],
    ];
    const ends = await Promise.all(cases.map(([words]) => holdfast(["ls", ...words])));
    for (const [at, [, said]] of cases.entries()) {
      expect([ends[at]?.code, ends[at]?.stderr]).toEqual([64, expect.stringContaining(`holdfast: ${said}`)]);
    }
  });
});
