/** What the tests use of oidc-provider, which comes without types. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export interface Claims {
    readonly sub: string;
    readonly [claim: string]: unknown;
  }

  export interface Configuration {
    readonly clients: readonly object[];
    readonly claims: { readonly [scope: string]: readonly string[] };
    readonly cookies: { readonly keys: readonly string[] };
    readonly ttl: { readonly [model: string]: number };
    readonly jwks: { readonly keys: readonly object[] };
    findAccount(
      ctx: unknown,
      id: string,
    ): { readonly accountId: string; claims(): Claims | Promise<Claims> };
  }

  export default class Provider {
    constructor(issuer: string, configuration: Configuration);
    callback(): (req: IncomingMessage, res: ServerResponse) => void;
  }
}
