/** Messages about a database that cannot be used: its address, the error, and what to do. */
import pg from "pg";
import { SchemaRefused } from "../migration.ts";
import { addressOf, InvalidAddress } from "../postgres-address.ts";
import { DatabaseAway } from "../unavailable.ts";
import { ReadOnlyHost } from "./database.ts";

/** Thrown when the database answers, and no node can work with its sessions; the message says why. */
export class UnfitSession extends Error {}

/** SQLSTATEs and errnos of a database that may answer later: it starts, fails over, or is restarted. */
const AWAY = new Set([
  ...["25006", "53300", "57P01", "57P02", "57P03"],
  ...["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
  ...["ETIMEDOUT", "EPIPE"],
]);

/**
 * Turns the error of a failed start into one message that says what to do; a `DatabaseAway` where
 * the next try may succeed.
 */
export function refusal(url: string, err: unknown): Error {
  const cause = err instanceof Error && err.cause instanceof Error ? err.cause : err;
  const message = `cannot open the database ${addressOf(url)}: ${reasonOf(cause)}`;
  return isAway(cause)
    ? new DatabaseAway(message, { cause: err })
    : new Error(message, { cause: err });
}

function isAway(err: unknown): boolean {
  const { code, message } = Object(err) as { readonly code?: unknown; readonly message?: unknown };
  const text = String(message);
  return (
    AWAY.has(String(code)) ||
    // A pooler, whose own server is away.
    (String(code) === "08P01" && !UNSUPPORTED.test(text)) ||
    /timeout|Connection terminated/i.test(text)
  );
}

/** How poolers refuse settings that they do not know. */
const UNSUPPORTED = /unsupported startup parameter/;

function reasonOf(err: unknown): string {
  const message = err instanceof Error ? err.message : String(err);
  if (
    err instanceof SchemaRefused ||
    err instanceof InvalidAddress ||
    err instanceof UnfitSession
  ) {
    return message;
  }
  const code = String((err as { readonly code?: unknown }).code ?? "");
  if (UNSUPPORTED.test(message)) {
    return `${message}; it is a pooler: have it ignore what it does not know (pgbouncer: ignore_startup_parameters = options), or use an address that leads straight to Postgres`;
  }
  if (err instanceof pg.DatabaseError || err instanceof ReadOnlyHost) {
    return `${message}${REMEDIES[code] ?? ""}`;
  }
  const remedy = REMEDIES[code];
  if (remedy !== undefined) {
    return remedy;
  }
  if (/timeout/i.test(message)) {
    return "it does not answer; check the host and the port, and that no firewall is between";
  }
  return /does not support SSL/.test(message)
    ? "it does not speak TLS; leave sslmode out of the address, or switch TLS on there"
    : message || code;
}

/** By SQLSTATE, appended to the server's message; by errno, instead of the system's message. */
const REMEDIES: Readonly<Record<string, string>> = {
  "28P01": "; check the user and the password in the address",
  "28000":
    "; the server's pg_hba.conf does not let this user in from here, or wants TLS (sslmode=require)",
  "3D000": "; create it, or name another in the address",
  "42501": "; grant this user CREATE on the database, or have its owner start tessera once",
  "53300": "; raise max_connections there, or close other programs",
  "57P03": "; it is starting or stopping, try again in a moment",
  "25006":
    "; it is a standby, use the address of the primary, or name all hosts with commas between them",
  ECONNREFUSED: "nothing listens there; check the host and the port, and that Postgres runs",
  ENOTFOUND: "the host is not known; check the address",
  EAI_AGAIN: "the host cannot be looked up; check the address and the name server",
  EHOSTUNREACH: "the host cannot be reached; check the address and the network",
  ENETUNREACH: "the host cannot be reached; check the address and the network",
  ETIMEDOUT: "it does not answer; check the host and the port, and that no firewall is between",
};
