/**
 * An OpenID Connect provider with which people sign in: the authorization
 * code flow (OpenID Connect Core 1.0, section 3.1) with PKCE (RFC 7636),
 * state and nonce. The provider is asked for its metadata at the first
 * sign-in, so that a node starts without it.
 */
import * as client from "openid-client";

/** A provider that does not answer must not hold up a browser for longer. */
const TIMEOUT_SECONDS = 10;

const SCOPE = "openid email profile";

export interface ProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
}

export interface Beginning {
  readonly nowMs: number;
  readonly afresh: boolean;
}

/** What has to be kept in the browser between its leaving and its coming back. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly beganAtMs: number;
}

/** Who the provider says it is. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  /** In lower case; undefined when the provider does not vouch for it. */
  readonly verifiedEmail: string | undefined;
  /** The same, whether it vouches for it or not: good for a record of a refusal, and nothing else. */
  readonly claimedEmail: string | undefined;
  /** When it had the person prove to be there; undefined when it does not say. */
  readonly authenticatedAtMs: number | undefined;
  /** May be empty. */
  readonly displayName: string;
}

/** The provider answered that it, or the person, does not want to. */
export class SignInDenied extends Error {
  override readonly name = "SignInDenied";
}

export class OidcProvider {
  readonly #options: ProviderOptions;
  #found: Promise<client.Configuration> | undefined;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  /**
   * Where to send the browser, and what to compare its answer with. With
   * `afresh`, the provider is to ask for the person even if it knows them
   * already, and to say when it did. Rejects when it cannot be asked.
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
   * Who came back with `query`. Rejects with a `SignInDenied`, or with an
   * error for the log when the answer is not valid.
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

  /** Asked again after a failure. */
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
  // The configuration lets only a provider on this machine be asked in the clear.
  const execute = url.protocol === "http:" ? [client.allowInsecureRequests] : [];
  const auth = clientSecret === undefined ? client.None() : authenticateBy(clientSecret);
  return client.discovery(url, clientId, undefined, auth, { execute, timeout: TIMEOUT_SECONDS });
}

/** As providers expect it unless they say otherwise: OpenID Connect Core 1.0, section 9. */
function authenticateBy(clientSecret: string): client.ClientAuth {
  const basic = client.ClientSecretBasic(clientSecret);
  const post = client.ClientSecretPost(clientSecret);
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    return (methods.includes("client_secret_basic") ? basic : post)(server, ...rest);
  };
}

type Claims = client.IDToken | client.UserInfoResponse;

/** Many providers tell the e-mail address only when they are asked for it. */
async function identityOf(
  idToken: client.IDToken,
  userInfo: () => Promise<client.UserInfoResponse>,
): Promise<Identity> {
  const claims: Claims = idToken.email === undefined ? await userInfo() : idToken;
  const { email, email_verified: isVerified, name } = claims;
  // Some write it as text.
  const vouched = isVerified === true || String(isVerified) === "true";
  const claimedEmail = typeof email === "string" ? email.trim().toLowerCase() : undefined;
  const { auth_time: authTime } = idToken;
  return {
    issuer: idToken.iss,
    subject: idToken.sub,
    verifiedEmail: vouched ? claimedEmail : undefined,
    claimedEmail,
    authenticatedAtMs: typeof authTime === "number" ? authTime * 1_000 : undefined,
    displayName: typeof name === "string" ? name.slice(0, 100) : "",
  };
}
