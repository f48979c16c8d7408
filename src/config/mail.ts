/** The settings of the mail server. */
import { faultOfEmail } from "../auth/names.ts";
import { optional, type Settings, type Values } from "./settings.ts";
import { ConfigError, type Parse } from "./values.ts";

/** How mail is sent; a secret, because of the login. */
export interface SmtpSecrets {
  readonly host: string;
  readonly port: number;
  /** True for TLS from the first byte (`smtps://`). */
  readonly secure: boolean;
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /** The sender's address. */
  readonly from: string;
}

type Server = Omit<SmtpSecrets, "from">;

/** The address of a mail server. Never quoted: it may hold a password. */
const smtpServer: Parse<Server> = (text, name) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const secure = url?.protocol === "smtps:";
  const known = secure || url?.protocol === "smtp:";
  if (url === undefined || !known || url.hostname === "" || hasMore(url)) {
    throw new ConfigError(
      `${name} must be the address of a mail server, smtps://user:password@host or smtp://user:password@host:587, with # / ? @ and : in the password as %23 %2F %3F %40 and %3A`,
    );
  }
  // The ports of RFC 8314, section 3.3 (TLS at once) and RFC 6409 (submission).
  const port = Number(url.port || (secure ? 465 : 587));
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port, secure, login: loginOf(url, name) };
};

function hasMore({ pathname, search, hash }: URL): boolean {
  return !["", "/"].includes(pathname) || search !== "" || hash !== "";
}

function loginOf({ username, password }: URL, name: string): Server["login"] {
  if (username === "" && password === "") {
    return undefined;
  }
  if (username === "" || password === "") {
    throw new ConfigError(`${name} must have both a user and a password, or neither`);
  }
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    throw new ConfigError(`${name}: write a % in the user or the password as %25`);
  }
}

const sender: Parse<string> = (text, name) => {
  const fault = faultOfEmail(text);
  if (fault !== undefined) {
    throw new ConfigError(`${name} ${fault}`);
  }
  return text;
};

export const MAIL_SETTINGS = {
  smtpUrl: optional({
    flag: "--smtp-url <url>",
    variable: "TESSERA_SMTP_URL",
    shownDefault: "none",
    parse: smtpServer,
    isSecret: (text) => text.includes("@"),
    summary: "mail server that sends invitations, such as smtps://user:password@mail.example.com",
    reason:
      "without one, links of invitations are shown to who invites, where you allow that. smtps:// is TLS at once (port 465), smtp:// is STARTTLS (port 587), which a login requires except on this machine; other users of the machine can see a command line, so pass a password in the environment",
  }),
  mailFrom: optional({
    flag: "--mail-from <address>",
    variable: "TESSERA_MAIL_FROM",
    shownDefault: "none",
    parse: sender,
    summary: "e-mail address of the sender of invitations",
    reason: "required with a mail server, which may not take mail from any other address",
  }),
} as const satisfies Settings;

/** Reads how mail is sent; undefined: not at all. Throws a `ConfigError`. */
export function smtpSecrets({
  smtpUrl,
  mailFrom,
}: Values<typeof MAIL_SETTINGS>): SmtpSecrets | undefined {
  if (smtpUrl === undefined && mailFrom === undefined) {
    return undefined;
  }
  if (smtpUrl === undefined || mailFrom === undefined) {
    const missing = smtpUrl === undefined ? "--smtp-url" : "--mail-from";
    throw new ConfigError(
      `to send mail, the platform needs both a mail server and a sender: set ${missing} too`,
    );
  }
  return { ...smtpUrl, from: mailFrom };
}
