/** The deployment that a playground calls, and as whom: by the session of a person, or a token. */
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { CallError } from "../../api/errors.ts";
import { send } from "../../api/send.ts";

export interface PlaygroundTarget {
  /** `acme/echo`; empty on its own host, which says which it is. */
  readonly name: string;
  /** The revision that it runs, where that is known: another one may have other endpoints. */
  readonly version?: number | undefined;
  /** Where others call it. */
  readonly url: string;
  /** Others need a token. */
  readonly needsToken: boolean;
  /** Sends a request to one of its paths. Throws a `CallError` unless it succeeds. */
  send(path: string, init?: RequestInit): Promise<Response>;
}

/** A deployment on the platform's host, called with the session of the person. */
export function ofPlatform(
  organization: string,
  { name, url = "", authorization = false, version }: DeploymentJson,
): PlaygroundTarget {
  const fullName = `${organization}/${name}`;
  return {
    name: fullName,
    version,
    url,
    needsToken: authorization,
    send: (path, init) => send(path, withHeader(init, "tessera-deployment", fullName)),
  };
}

/**
 * The deployment of this host, called with the token of this tab, if there is one. `ask` is called
 * where the server wants one, and says whether there is another one now.
 */
export function ofHost(
  url: string,
  token: () => string | null,
  ask: (message: string) => Promise<boolean>,
): PlaygroundTarget {
  const sendWithToken: PlaygroundTarget["send"] = async (path, init) => {
    const own = token();
    try {
      return await send(path, own ? withHeader(init, "authorization", `Bearer ${own}`) : init);
    } catch (err) {
      if (err instanceof CallError && err.status === 401 && (await ask(err.message))) {
        return sendWithToken(path, init);
      }
      throw err;
    }
  };
  return {
    name: "",
    url,
    get needsToken() {
      return token() !== null;
    },
    send: sendWithToken,
  };
}

function withHeader(init: RequestInit | undefined, name: string, value: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set(name, value);
  return { ...init, headers };
}
