/** Parsers of settings: each takes a text and returns its value, or throws a message that says what is allowed. */
import { parseNetwork } from "../collections/networks.ts";
import { ruleFault } from "../pool/egress/rules.ts";
import { formatDuration, parseDuration } from "../protocol/duration.ts";
import { parseAddress } from "../storage/postgres-address.ts";

/** An invalid setting; the message names it and says what is valid. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Reads a text; `name` is what the person who wrote it calls the setting. Throws a `ConfigError`. */
export type Parse<Value> = (text: string, name: string) => Value;

/** Labels of one machine, as in the protocol of workers. */
const MAX_MACHINE_LABELS = 32;

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

/** A whole number from `min` to `max`, both included. */
export function integer(min: number, max: number): Parse<number> {
  return (text, name) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new ConfigError(
        `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
      );
    }
    return value;
  };
}

/** A decimal number from `min` to `max`, both included. */
export function decimal(min: number, max: number): Parse<number> {
  return (text, name) => {
    const value = Number(text);
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(text) || value < min || value > max) {
      throw new ConfigError(
        `${name} must be a number from ${min} to ${max}, not ${JSON.stringify(text)}`,
      );
    }
    return value;
  };
}

/** A token as a header carries it: the error of a header that cannot would contain it. */
export const token: Parse<string> = (text, name) => {
  const value = text.trim();
  if (!/^[!-~]{1,1024}$/.test(value)) {
    throw new ConfigError(`${name} is not a token: tokens have no spaces in them`);
  }
  return value;
};

/** A moment such as `2027-01-31T18:00:00Z`, in milliseconds since 1970. */
export const moment: Parse<number> = (text, name) => {
  const ms = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new ConfigError(
      `${name} must be a time with its zone, such as 2027-01-31T18:00:00Z, not ${JSON.stringify(text)}`,
    );
  }
  return ms;
};

/** One of a list of words. */
export function oneOf<Word extends string>(words: readonly Word[]): Parse<Word> {
  return (text, name) => {
    const word = words.find((each) => each === text);
    if (word === undefined) {
      throw new ConfigError(`${name} must be one of ${words.join(", ")}, not ${text}`);
    }
    return word;
  };
}

/** A length of time such as `10s` or `14d`, in milliseconds. */
export function duration(minMs: number, maxMs: number): Parse<number> {
  return (text, name) => {
    const valueMs = parseDuration(text);
    if (valueMs === undefined || valueMs < minMs || valueMs > maxMs) {
      throw new ConfigError(
        `${name} must be a time from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, such as 30s, 10m, 12h or 7d, not ${JSON.stringify(text)}`,
      );
    }
    return valueMs;
  };
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** A number of bytes such as `4MiB`. */
export function size(minBytes: number, maxBytes: number): Parse<number> {
  return (text, name) => {
    const [, amount, unit = ""] = /^(\d{1,9})(KiB|MiB|GiB)?$/.exec(text) ?? [];
    const bytes = amount === undefined ? -1 : Number(amount) * (SIZE_UNITS[unit] ?? 1);
    if (bytes < minBytes || bytes > maxBytes) {
      throw new ConfigError(
        `${name} must be a size from ${minBytes} to ${maxBytes} bytes, such as 65536, 512KiB or 4MiB, not ${JSON.stringify(text)}`,
      );
    }
    return bytes;
  };
}

/** What stands between commas, without empty entries. */
function entriesOf(text: string): readonly string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/** Labels such as `region=eu,team=search`, whose names are those of Prometheus. */
export const labels: Parse<{ readonly [name: string]: string }> = (text, name) => {
  const pairs = entriesOf(text);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, label, value] = /^([a-zA-Z_][a-zA-Z0-9_]*)=(.*)$/.exec(pair) ?? [];
      if (label === undefined || value === undefined) {
        throw new ConfigError(
          `${name} must be labels such as region=eu,team=search; ${JSON.stringify(pair)} is not one`,
        );
      }
      return [label, value];
    }),
  );
};

/** Labels of a machine such as `gpu=h200,zone=b`, which deployments may require. */
export const machineLabels: Parse<{ readonly [name: string]: string }> = (text, name) => {
  const pairs = entriesOf(text);
  const found = pairs.map((pair): [string, string] => {
    const [, label, value] =
      /^([A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?)=([A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?)$/.exec(
        pair,
      ) ?? [];
    if (label === undefined || value === undefined) {
      throw new ConfigError(
        `${name} must be a label with its value, such as gpu=h200; ${JSON.stringify(pair.slice(0, 320))} is not one`,
      );
    }
    return [label, value];
  });
  if (found.length > MAX_MACHINE_LABELS) {
    throw new ConfigError(`${name}: a machine may have at most ${MAX_MACHINE_LABELS} labels`);
  }
  return Object.fromEntries(found);
};

/** An address to listen on. */
export const host: Parse<string> = (text, name) => {
  // The system takes an empty host for every address of the machine.
  if (text.trim() === "") {
    throw new ConfigError(
      `${name} is empty: give an address, such as 127.0.0.1, or 0.0.0.0 for all`,
    );
  }
  if (!URL.canParse(`http://${text.includes(":") ? `[${text}]` : text}`)) {
    throw new ConfigError(
      `${name} must be an address or a host name without a port, such as 127.0.0.1, not ${JSON.stringify(text)}`,
    );
  }
  return text;
};

/**
 * A text without what may be a password in an address: its user with the password, up to the last
 * `@` before the path, and its query. Parsers take addresses with fewer slashes and with
 * backslashes, and a wrong address, which a message quotes, may lack its scheme.
 */
export function withoutPasswords(text: string): string {
  return text.replaceAll(/(?:(:)[/\\]*|\/\/)[^/\\]*@/g, "$1//…@").replace(/(:[^?]*\?).+/s, "$1…");
}

/** Quotes an address without the password that it may hold. */
function shown(text: string): string {
  return JSON.stringify(withoutPasswords(text));
}

/** An address that browsers open, without a path: its origin. */
export const origin: Parse<string> = (text, name) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== "" ||
    `${url.pathname}${url.search}${url.hash}` !== "/"
  ) {
    throw new ConfigError(
      `${name} must be where browsers reach this server, without a path, such as https://tessera.example.com, not ${shown(text)}`,
    );
  }
  return url.origin;
};

/** Origins of pages, as browsers write them, with commas between them; or `*` alone. */
export const origins: Parse<readonly string[]> = (text, name) => {
  const entries = entriesOf(text);
  if (entries.length === 1 && entries[0] === "*") {
    return entries;
  }
  return entries.map((entry) => {
    const url = URL.canParse(entry) ? new URL(entry) : undefined;
    const isOrigin =
      url !== undefined && [url.origin, `${url.origin}/`].includes(entry.toLowerCase());
    if (url === undefined || !isOrigin || !/^https?:$/.test(url.protocol)) {
      throw new ConfigError(
        `${name} must be origins of pages with commas between them, such as https://app.example.com,http://localhost:5173, or * alone for all; ${shown(entry)} is not one`,
      );
    }
    return url.origin;
  });
};

/** A host name, such as `apps.example.com`, in lower case. */
export const domain: Parse<string> = (text, name) => {
  const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
  const lower = text.toLowerCase();
  if (lower.length > 190 || !new RegExp(`^${label}(?:\\.${label})*$`).test(lower)) {
    throw new ConfigError(
      `${name} must be a host name without scheme, port and path, such as apps.example.com, not ${JSON.stringify(text)}`,
    );
  }
  return lower;
};

/** Addresses and networks in CIDR notation, with commas between them. */
export const networks: Parse<readonly string[]> = (text, name) => {
  const entries = entriesOf(text);
  for (const entry of entries) {
    if (parseNetwork(entry) === undefined) {
      throw new ConfigError(
        `${name} must be addresses or networks with commas between them, such as 10.0.0.0/8,127.0.0.1; ${JSON.stringify(entry)} is not one`,
      );
    }
  }
  return entries;
};

/** Hosts, addresses and networks, each with an optional port, with commas between them. */
export const hostRules: Parse<readonly string[]> = (text, name) => {
  const entries = entriesOf(text);
  for (const entry of entries) {
    const fault = ruleFault(entry);
    if (fault !== undefined) {
      throw new ConfigError(`${name}: each host ${fault}; ${JSON.stringify(entry)} is not one`);
    }
  }
  return entries;
};

/** The address of an OpenID Connect provider. Tokens travel to it, so plain HTTP is allowed on this machine only. */
export const issuer: Parse<string> = (text, name) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(url?.hostname ?? "");
  if (url === undefined || !(url.protocol === "https:" || (url.protocol === "http:" && local))) {
    throw new ConfigError(
      `${name} must be the provider's https:// address, such as https://accounts.example.com, not ${shown(text)}`,
    );
  }
  return text;
};

/**
 * The address of a platform that workers join. Their tokens, and all that their functions read,
 * travel to it, so plain HTTP is allowed on this machine only.
 */
export const platform: Parse<string> = (text, name) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(url?.hostname ?? "");
  if (url?.protocol === "http:" && !local) {
    throw new ConfigError(
      `${name} must be an https:// address: the token, the secrets and the arguments of calls would travel to ${url.host} unencrypted`,
    );
  }
  if (url === undefined || !["http:", "https:"].includes(url.protocol) || url.username !== "") {
    throw new ConfigError(
      `${name} must be the platform's address, such as https://tessera.example.com, not ${shown(text)}`,
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
};

/** A text of at most 200 characters, on one line. */
export const line: Parse<string> = (text, name) => {
  if (text.length > 200 || /\p{Cc}/u.test(text)) {
    throw new ConfigError(`${name} must be one line of at most 200 characters`);
  }
  return text;
};

/** True for the address of a Postgres database rather than the path of a file. */
export function isPostgres(text: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(text);
}

/** The path of a SQLite file, or the address of a Postgres database. Never quoted: it may hold a password. */
export const database: Parse<string> = (text, name) => {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1];
  if (scheme !== undefined && !isPostgres(text)) {
    throw new ConfigError(
      `${name} takes the path of a SQLite file, such as ./tasks.db, or the address of a Postgres database, postgres://user:password@host/database; the scheme ${scheme}:// is not known`,
    );
  }
  if (text === "") {
    throw new ConfigError(`${name} is empty: give the path of a SQLite file, such as ./tasks.db`);
  }
  if (isPostgres(text)) {
    checkPostgres(text, name);
  }
  return text;
};

/** The address of a Postgres database. Never quoted: it may hold a password. */
export const postgres: Parse<string> = (text, name) => {
  if (!isPostgres(text)) {
    throw new ConfigError(
      `${name} takes the address of a Postgres database, postgres://user:password@host/database`,
    );
  }
  checkPostgres(text, name);
  return text;
};

/** A cell, as it is configured: its name, and the address of its Postgres. */
export interface CellAddress {
  readonly name: string;
  readonly database: string;
}

/** Cells such as `a=postgres://…,b=postgres://…`; an address may have commas between its hosts. */
export const cells: Parse<readonly CellAddress[]> = (text, name) => {
  const found = text.split(/,(?=[^,=/]*=postgres(?:ql)?:)/i).map((pair): CellAddress => {
    const [, cell = "", database = ""] = /^([^=]*)=(.*)$/s.exec(pair.trim()) ?? [];
    if (!/^[a-z][a-z0-9-]{0,29}$/.test(cell) || cell === "home" || !isPostgres(database)) {
      throw new ConfigError(
        `${name} must be cells such as a=postgres://user:password@host/database, with commas between them; names have lower case letters, digits and hyphens, and none is home${/^[a-z0-9-]{1,30}$/i.test(cell) ? `: ${cell} is not one` : ""}`,
      );
    }
    checkPostgres(database, `${name}, cell ${cell}`);
    return { name: cell, database };
  });
  for (const [at, { name: cell, database }] of found.entries()) {
    const before = found.slice(0, at);
    if (before.some((one) => one.name === cell)) {
      throw new ConfigError(`${name} names cell ${cell} twice: give each cell a name of its own`);
    }
    const same = before.find((one) => isSameDatabase(one.database, database));
    if (same !== undefined) {
      throw new ConfigError(
        `${name} gives the cells ${same.name} and ${cell} one database: each needs its own`,
      );
    }
  }
  return found;
};

/** Whether two addresses lead to one database, as far as they tell. */
export function isSameDatabase(one: string, other: string): boolean {
  const [a, b] = [one, other].map((address) => {
    const { urls } = parseAddress(address);
    return urls.map((url) => {
      const { hostname, port, pathname } = new URL(url);
      return `${hostname}:${port || "5432"}${pathname}`;
    });
  });
  return (a ?? []).some((host) => b?.includes(host));
}

function checkPostgres(text: string, name: string): void {
  try {
    parseAddress(text);
  } catch (err) {
    throw new ConfigError(`${name}: ${err instanceof Error ? err.message : String(err)}`);
  }
}

/** The address of a Prometheus. Never quoted: it may hold a password. */
export const prometheus: Parse<string> = (text, name) => {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new ConfigError(
      `${name} must be the http:// or https:// address of a Prometheus, such as http://prometheus:9090`,
    );
  }
  return text;
};

/** A secret that is sent in a header, so it has to be one line of ASCII. Never quoted. */
export const headerSecret: Parse<string> = (text, name) => {
  if (!/^[ -~]{16,256}$/.test(text) || text.trim() !== text) {
    throw new ConfigError(
      `${name} must have 16 to 256 characters: ASCII letters, digits and punctuation`,
    );
  }
  return text;
};

/** Any text, unchanged; also for secrets, which no message quotes. */
export const text: Parse<string> = (given) => given;
