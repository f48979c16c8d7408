/**
 * Which of a server's faces a host shows: the hosts below the apps domain are
 * those of deployments, all others are the platform's. Most routes answer on
 * both; what is made for one of them is not there on the other.
 */
import type { FastifyServerOptions } from "fastify";

export type HostKind = "platform" | "deployment";

type RouterOptions = NonNullable<FastifyServerOptions["routerOptions"]>;
type Strategy = NonNullable<RouterOptions["constraints"]>[string];
type Handlers = ReturnType<Strategy["storage"]>;
type Handler = Parameters<Handlers["set"]>[1];

/**
 * Tells the router. Without an apps domain every host is the platform's.
 * A proxy in front has to pass `Host` on as it came.
 *
 * @param options.forwarded a proxy may say which host was asked. A request
 * that names a deployment's host in either way is for a deployment: so nobody
 * gets from there to the platform by what they say.
 */
export function hostKinds(
  appsDomain: string | undefined,
  { forwarded = false }: { readonly forwarded?: boolean } = {},
): Strategy {
  const isApp = (host: unknown): boolean =>
    appsDomain !== undefined &&
    typeof host === "string" &&
    host.split(",").some((each) => appOf(each.trim(), appsDomain) !== undefined);
  return {
    name: "hostKind",
    mustMatchWhenDerived: false,
    storage() {
      const handlers = new Map<string, Handler>();
      return {
        get: (hostKind) => handlers.get(hostKind) ?? null,
        set: (hostKind, handler) => void handlers.set(hostKind, handler),
      };
    },
    deriveConstraint: ({ headers }): HostKind =>
      isApp(headers.host) ||
      isApp(headers[":authority"]) ||
      (forwarded && isApp(headers["x-forwarded-host"]))
        ? "deployment"
        : "platform",
  };
}

/**
 * What stands before the apps domain in a host: `summarizer.acme` for
 * `summarizer.acme.apps.example:3000`. undefined for other hosts.
 */
export function appOf(host: string, appsDomain: string): string | undefined {
  const name = host.replace(/:\d+$/, "").replace(/\.$/, "").toLowerCase();
  return name.endsWith(`.${appsDomain}`) ? name.slice(0, -appsDomain.length - 1) : undefined;
}
