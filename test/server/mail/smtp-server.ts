/** A mail server on this machine: it speaks as much SMTP (RFC 5321) as tests need, and keeps what it takes. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** A mail that was delivered. */
export interface Delivered {
  readonly from: string;
  readonly to: readonly string[];
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly html: string;
}

export interface SmtpServerOptions {
  /** Answers to commands in place of the usual ones; "" is silence. */
  readonly answers?: Readonly<Record<string, string>>;
  /** What it offers in its answer to EHLO. */
  readonly offers?: readonly string[];
}

export class SmtpServer implements AsyncDisposable {
  readonly mails: Delivered[] = [];
  /** Every command that arrived. */
  readonly commands: string[] = [];
  answers: Readonly<Record<string, string>>;
  readonly #offers: readonly string[];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor({ answers = {}, offers = [] }: SmtpServerOptions) {
    this.answers = answers;
    this.#offers = offers;
    this.#server = createServer((socket) => void this.#serve(socket));
  }

  static async listen(options: SmtpServerOptions = {}): Promise<SmtpServer> {
    const server = new SmtpServer(options);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
    const say = (text: string): void => void (text !== "" && socket.write(`${text}\r\n`));
    say(this.answers.GREETING ?? "220 test ESMTP");
    let mail = { from: "", to: [] as string[], data: undefined as string[] | undefined };
    for await (const line of createInterface({ input: socket })) {
      if (mail.data !== undefined) {
        if (line !== ".") {
          mail.data.push(line.replace(/^\./, ""));
          continue;
        }
        this.mails.push({ from: mail.from, to: mail.to, ...parse(mail.data.join("\n")) });
        mail = { from: "", to: [], data: undefined };
        say("250 taken");
        continue;
      }
      this.commands.push(line);
      const [verb = ""] = line.toUpperCase().split(/[ :]/);
      const address = /<([^>]*)>/.exec(line)?.[1] ?? "";
      const given = this.answers[verb];
      if (given !== undefined) {
        say(given);
      } else if (verb === "EHLO") {
        say(
          ["test", ...this.#offers]
            .map((text, at, all) => `250${at + 1 < all.length ? "-" : " "}${text}`)
            .join("\r\n"),
        );
      } else if (verb === "DATA") {
        mail.data = [];
        say("354 go on");
      } else if (verb === "QUIT") {
        say("221 bye");
        socket.end();
      } else {
        mail.from = verb === "MAIL" ? address : mail.from;
        mail.to.push(...(verb === "RCPT" ? [address] : []));
        say(verb === "AUTH" ? "235 yes" : "250 yes");
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    this.#server.close();
    await once(this.#server, "close");
  }
}

function parse(data: string): Pick<Delivered, "headers" | "text" | "html"> {
  const { headers, body } = split(data);
  const boundary = /boundary="?([^";]+)"?/.exec(headers["content-type"] ?? "")?.[1] ?? "";
  const parts = body
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => split(part.replace(/^\n/, "")));
  const of = (type: string): string => {
    const part = parts.find((one) => one.headers["content-type"]?.startsWith(type));
    return part === undefined ? "" : decode(part);
  };
  return { headers, text: of("text/plain"), html: of("text/html") };
}

function split(text: string): { headers: Record<string, string>; body: string } {
  const [head = "", ...rest] = text.split("\n\n");
  const lines = head.replaceAll(/\n[ \t]+/g, " ").split("\n");
  const pairs = lines.map((line) => {
    const [, name = "", value = ""] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    return [name.toLowerCase(), value];
  });
  return { headers: Object.fromEntries(pairs), body: rest.join("\n\n") };
}

function decode({ headers, body }: { headers: Record<string, string>; body: string }): string {
  const encoding = headers["content-transfer-encoding"];
  if (encoding === "base64") {
    return Buffer.from(body, "base64").toString();
  }
  if (encoding !== "quoted-printable") {
    return body;
  }
  const joined = body.replaceAll("=\n", "");
  const bytes = joined.replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString();
}
