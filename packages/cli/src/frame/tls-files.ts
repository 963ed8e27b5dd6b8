/**
 * Reads and checks the files of the `--tls-*` flags before anything connects. Imported only if TLS is used, because it
 * takes milliseconds to load.
 */
import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { usageError } from "./exit-codes.js";
import type { CommonFlags } from "./flags.js";
import { fileOf, firstLineOf } from "./tls.js";

/** The files, as options of `tls.connect`. */
export interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/**
 * Returns the contents of the files that the flags name.
 *
 * @param isSecure  whether a URL begins with rediss://
 * @throws CliError 64  flags without a rediss:// URL; a certificate without its key, or with a different one; a file
 *         that cannot be read, or does not contain what the flag needs
 */
export function tlsOf({ tls }: CommonFlags, isSecure: boolean): TlsFiles {
  const given = (["ca", "cert", "key"] as const).filter((one) => tls[one] !== undefined);
  if (given.length > 0 && !isSecure) {
    throw usageError(`--tls-${given[0]} needs a URL that begins with rediss://: redis:// does not use TLS`);
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw usageError(tls.key === undefined ? "--tls-cert requires --tls-key" : "--tls-key requires --tls-cert");
  }
  const files: TlsFiles = Object.fromEntries(
    given.map((one) => [one, fileOf(`--tls-${one}`, tls[one] as string)] as const),
  );
  const { ca, cert, key } = files;
  if (ca !== undefined) checkCertificate("--tls-ca", ca);
  if (cert === undefined || key === undefined) return files;
  checkCertificate("--tls-cert", cert);
  attempt("--tls-key must be the key of --tls-cert, in PEM and without a passphrase", () =>
    createSecureContext({ cert, key }),
  );
  return files;
}

function checkCertificate(flag: string, bytes: Buffer): void {
  const rule = `${flag} must be a file with a certificate in PEM`;
  if (!bytes.includes("-----BEGIN ")) throw usageError(`${rule}; it has none`);
  attempt(rule, () => new X509Certificate(bytes));
}

function attempt(rule: string, act: () => unknown): void {
  try {
    act();
  } catch (error) {
    throw usageError(`${rule}: ${firstLineOf((error as Error).message)}`);
  }
}
