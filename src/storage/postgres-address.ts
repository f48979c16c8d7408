/**
 * Addresses of Postgres: one host, or several in the form of libpq,
 * `postgres://user:password@one:5432,two:5432/database?target_session_attrs=read-write`.
 */

/** The part before the hosts, the hosts, and what follows them. */
const ADDRESS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is;

/** What a platform can work with: it writes. */
const WRITABLE = ["read-write", "primary"];

/** The addresses of one database, in the order in which they are tried. */
interface HostAddresses {
  /** One address for each host; at least one. */
  readonly urls: readonly string[];
  /** Whether a connection counts only where it may write: a standby is passed over. */
  readonly mustWrite: boolean;
}

/**
 * Splits an address by its hosts. Throws an error with a sentence about it, which quotes nothing
 * of the address.
 */
export function parseAddress(address: string): HostAddresses {
  const [, before = "", hosts = "", after = ""] = ADDRESS.exec(address) ?? [];
  const urls = hosts.split(",").map((host) => `${before}${host}${after}`);
  const several = urls.length > 1;
  if (!urls.every((url) => URL.canParse(url)) || (several && hosts.split(",").includes(""))) {
    throw new InvalidAddress(
      "it is not a valid address; write postgres://user:password@host:5432/name, or several hosts with commas between them, with # / ? @ and : in the password as %23 %2F %3F %40 and %3A",
    );
  }
  const wanted = new URL(urls[0] ?? "").searchParams.get("target_session_attrs");
  if (wanted !== null && !WRITABLE.includes(wanted)) {
    throw new InvalidAddress(
      "its target_session_attrs must be read-write: a node writes, and cannot work on a standby",
    );
  }
  return { urls, mustWrite: several || wanted !== null };
}

/** An address that cannot be used, whatever listens there. */
export class InvalidAddress extends Error {}

/** Returns a database's address without its password. */
export function addressOf(address: string): string {
  try {
    const { urls } = parseAddress(address);
    const { protocol, username, pathname } = new URL(urls[0] ?? "");
    const hosts = urls.map((url) => new URL(url).host).join(",");
    return `${protocol}//${username === "" ? "" : `${username}@`}${hosts}${pathname}`;
  } catch {
    return "postgres://…";
  }
}

/** Round-robin over the hosts of a database, which stays at the one that answered last. */
export class Hosts {
  readonly #urls: readonly string[];
  readonly mustWrite: boolean;
  #index = 0;

  constructor(address: string) {
    const { urls, mustWrite } = parseAddress(address);
    this.#urls = urls;
    this.mustWrite = mustWrite;
  }

  get count(): number {
    return this.#urls.length;
  }

  /** The address to connect to now. */
  get current(): string {
    return this.#urls[this.#index] ?? "";
  }

  /** Goes on to the next host, unless somebody has done so already. */
  leave(url: string): void {
    if (url === this.current) {
      this.#index = (this.#index + 1) % this.#urls.length;
    }
  }
}
