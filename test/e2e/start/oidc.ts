/** A real OpenID Connect provider in this process, and a browser's way through it. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export const CLIENT = { id: "tessera", secret: "a secret of the client" } as const;

/** What the provider says of the person who signs in there under a name. */
export interface Account {
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
}

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

export class TestProvider implements AsyncDisposable {
  readonly accounts = new Map<string, Account>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Listens; it is out of service until `serve`. */
  static async listen(): Promise<TestProvider> {
    const server = createServer((_req, res) => res.writeHead(503).end());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TestProvider(server);
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The platform's settings to sign in here. */
  get settings() {
    return {
      TESSERA_OIDC_ISSUER: this.issuer,
      TESSERA_OIDC_CLIENT_ID: CLIENT.id,
      TESSERA_OIDC_CLIENT_SECRET: CLIENT.secret,
    };
  }

  /** Answers for one client; without `secret` it is a public one. */
  serve(redirectUri: string, { secret }: { readonly secret?: string } = CLIENT): void {
    const provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT.id,
          redirect_uris: [redirectUri],
          ...(secret === undefined
            ? { token_endpoint_auth_method: "none" }
            : { client_secret: secret }),
        },
      ],
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
      cookies: { keys: ["of the tests"] },
      // Said, so that the library does not remark on it.
      ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
      jwks: { keys: [privateKey.export({ format: "jwk" })] },
      findAccount: (_ctx, id) => ({
        accountId: id,
        claims: () => ({ sub: id, ...this.accounts.get(id) }),
      }),
    });
    this.#server.removeAllListeners("request").on("request", provider.callback());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** Follows redirects and keeps cookies by host, as browsers do, which do not look at the port. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** The cookies for a host, as a header. */
  cookies(host: string): Record<string, string> {
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    return { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") };
  }

  /** Loses the cookies of a host. */
  forget(host: string): void {
    this.#cookies.delete(host);
  }

  async request(url: string, form?: Record<string, string>): Promise<Response> {
    const { hostname } = new URL(url);
    const res = await fetch(url, {
      redirect: "manual",
      headers: this.cookies(hostname),
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
    const jar = this.#cookies.get(hostname) ?? new Map<string, string>();
    this.#cookies.set(hostname, jar);
    for (const cookie of res.headers.getSetCookie()) {
      const [pair = ""] = cookie.split(";", 1);
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      if (value === "") {
        jar.delete(name);
      } else {
        jar.set(name, value);
      }
    }
    return res;
  }

  /** Opens an address, and answers where the redirects end. */
  async open(url: string, form?: Record<string, string>): Promise<string> {
    const res = await this.request(url, form);
    const location = res.headers.get("location");
    await res.arrayBuffer();
    return location === null ? url : this.open(new URL(location, url).href);
  }

  /** Signs in at the provider under a name, and answers where one ends. */
  async signIn(startUrl: string, login: string): Promise<string> {
    const question = await this.open(startUrl);
    if (!question.includes("/interaction/")) {
      return question;
    }
    const consent = await this.open(question, { prompt: "login", login, password: "any" });
    return consent.includes("/interaction/") ? this.open(consent, { prompt: "consent" }) : consent;
  }
}
