/**
 * Routing by host: hosts below the apps domain belong to deployments, all others
 * to the platform. Most routes answer on both kinds; a route made for one kind does
 * not exist on the other.
 */
import type { FastifyServerOptions } from "fastify";

export type HostKind = "platform" | "deployment";

type RouterOptions = NonNullable<FastifyServerOptions["routerOptions"]>;
type Strategy = NonNullable<RouterOptions["constraints"]>[string];
type Handlers = ReturnType<Strategy["storage"]>;
type Handler = Parameters<Handlers["set"]>[1];

/**
 * A routing constraint for Fastify. Without an apps domain, every host is the
 * platform's. A proxy has to pass `Host` on unchanged.
 *
 * @param options.forwarded also reads `X-Forwarded-Host`. A request that names a
 * deployment's host in any of these headers is for a deployment, so nobody reaches
 * the platform from there by adding a header.
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
 * The part of a host before the apps domain: `summarizer.acme` for
 * `summarizer.acme.apps.example:3000`. Undefined for other hosts.
 */
export function appOf(host: string, appsDomain: string): string | undefined {
  const name = host.replace(/:\d+$/, "").replace(/\.$/, "").toLowerCase();
  return name.endsWith(`.${appsDomain}`) ? name.slice(0, -appsDomain.length - 1) : undefined;
}

/** `acme` for `acme.tessera.example:3000` if the platform's domain is `tessera.example`. */
export function organizationOfHost(host: string, platformDomain: string): string | undefined {
  const label = appOf(host, platformDomain);
  return label === "" || label?.includes(".") ? undefined : label;
}
