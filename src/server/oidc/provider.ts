/**
 * The OpenID Connect client: the authorization code flow (OpenID Connect Core
 * 1.0, section 3.1) with PKCE (RFC 7636), state and nonce. It fetches the
 * provider's metadata at the first sign-in, so that a node starts without the
 * provider.
 */
import * as client from "openid-client";

/** How long a provider may take to answer, because it must not hold up a browser for longer. */
const OIDC_TIMEOUT_SECONDS = 10;

const SCOPE = "openid email profile";

interface ProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  /** The address to which the provider returns the browser. */
  readonly redirectUri: string;
}

interface Beginning {
  readonly nowMs: number;
  /** True to have the provider authenticate the person even if it knows them already. */
  readonly afresh: boolean;
}

/** State that the browser keeps while it is at the provider. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly beganAtMs: number;
}

/** The identity that the provider asserts. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  /** In lower case; undefined if the provider has not verified it. */
  readonly verifiedEmail: string | undefined;
  /** The same, verified or not: only for the record of a refusal. */
  readonly claimedEmail: string | undefined;
  /** When the provider last authenticated the person (`auth_time`); undefined if it does not say. */
  readonly authenticatedAtMs: number | undefined;
  /** May be empty. */
  readonly displayName: string;
}

/** The provider or the person refused the sign-in. */
export class SignInDenied extends Error {
  override readonly name = "SignInDenied";
}

/** One OpenID Connect provider. */
export class OidcProvider {
  readonly #options: ProviderOptions;
  #found: Promise<client.Configuration> | undefined;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  /**
   * Returns the address for the browser, and the state to compare its answer
   * with. With `afresh`, the provider authenticates the person even if it knows
   * them already, and states when it did. Rejects if the provider cannot be
   * reached.
   */
  async begin({
    nowMs,
    afresh,
  }: Beginning): Promise<{ readonly url: string; readonly flow: Flow }> {
    const config = await this.#configuration();
    const flow: Flow = {
      beganAtMs: nowMs,
      state: client.randomState(),
      nonce: client.randomNonce(),
      codeVerifier: client.randomPKCECodeVerifier(),
    };
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: this.#options.redirectUri,
      scope: SCOPE,
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(flow.codeVerifier),
      code_challenge_method: "S256",
      // OpenID Connect Core 1.0, section 3.1.2.1: with a max_age, the answer has to have auth_time.
      ...(afresh && { prompt: "login", max_age: "0" }),
    });
    return { url: url.href, flow };
  }

  /**
   * Returns the identity of the person who came back with `query`. Rejects with
   * a `SignInDenied`, or with an error for the log if the answer is invalid.
   */
  async finish(query: string, { state, nonce, codeVerifier }: Flow): Promise<Identity> {
    const config = await this.#configuration();
    const answer = new URL(this.#options.redirectUri);
    answer.search = query;
    try {
      const tokens = await client.authorizationCodeGrant(config, answer, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) {
        throw new Error("the provider gave no ID token");
      }
      return await identityOf(claims, () =>
        client.fetchUserInfo(config, tokens.access_token, claims.sub),
      );
    } catch (err) {
      if (err instanceof client.AuthorizationResponseError) {
        throw new SignInDenied(`the provider answered ${err.error}`, { cause: err });
      }
      throw err;
    }
  }

  /** The provider's metadata, fetched once; after a failure it is fetched again. */
  #configuration(): Promise<client.Configuration> {
    this.#found ??= discover(this.#options).catch((err: unknown) => {
      this.#found = undefined;
      throw err;
    });
    return this.#found;
  }
}

function discover({
  issuer,
  clientId,
  clientSecret,
}: ProviderOptions): Promise<client.Configuration> {
  const url = new URL(issuer);
  // The configuration allows plain HTTP only for a provider on this machine.
  const execute = url.protocol === "http:" ? [client.allowInsecureRequests] : [];
  const auth = clientSecret === undefined ? client.None() : authenticateBy(clientSecret);
  return client.discovery(url, clientId, undefined, auth, {
    execute,
    timeout: OIDC_TIMEOUT_SECONDS,
  });
}

/** `client_secret_basic`, the default of OpenID Connect Core 1.0, section 9, or `client_secret_post` if the provider lacks it. */
function authenticateBy(clientSecret: string): client.ClientAuth {
  const basic = client.ClientSecretBasic(clientSecret);
  const post = client.ClientSecretPost(clientSecret);
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    return (methods.includes("client_secret_basic") ? basic : post)(server, ...rest);
  };
}

type Claims = client.IDToken | client.UserInfoResponse;

/** The identity from the ID token, or from the userinfo endpoint: many providers give the e-mail address only there. */
async function identityOf(
  idToken: client.IDToken,
  userInfo: () => Promise<client.UserInfoResponse>,
): Promise<Identity> {
  const claims: Claims = idToken.email === undefined ? await userInfo() : idToken;
  const { email, email_verified: isVerified, name } = claims;
  // Some providers write it as a string.
  const vouched = isVerified === true || String(isVerified) === "true";
  const claimedEmail = typeof email === "string" ? email.trim().toLowerCase() : undefined;
  const { auth_time: authTime } = idToken;
  return {
    issuer: idToken.iss,
    subject: idToken.sub,
    verifiedEmail: vouched ? claimedEmail : undefined,
    claimedEmail,
    authenticatedAtMs: typeof authTime === "number" ? authTime * 1_000 : undefined,
    displayName: typeof name === "string" ? name.replaceAll(/\p{Cc}/gu, " ").slice(0, 100) : "",
  };
}
