/** The settings of signing in with an OpenID Connect provider. */
import { optional, type Settings, setting } from "./settings.ts";
import * as values from "./values.ts";

export const OIDC_SETTINGS = {
  oidcIssuer: optional({
    flag: "--oidc-issuer <url>",
    variable: "TESSERA_OIDC_ISSUER",
    shownDefault: "none",
    parse: values.issuer,
    summary: "OpenID Connect provider with which people may sign in",
    reason:
      "without one, people sign in with a password; the redirect URL to register there is <public URL>/auth/oidc/callback",
  }),
  oidcClientId: optional({
    flag: "--oidc-client-id <id>",
    variable: "TESSERA_OIDC_CLIENT_ID",
    shownDefault: "none",
    parse: values.line,
    summary: "client id of this platform at the provider",
    reason: "required with an issuer",
  }),
  oidcClientSecret: optional({
    variable: "TESSERA_OIDC_CLIENT_SECRET",
    shownDefault: "none",
    parse: values.text,
    isSecret: () => true,
    summary: "client secret that the provider issued to this platform",
    reason: "none: a public client, protected by PKCE",
  }),
  oidcName: setting({
    flag: "--oidc-name <name>",
    variable: "TESSERA_OIDC_NAME",
    fallback: "single sign-on",
    parse: values.line,
    summary: "name of the provider on the sign-in page",
    reason: "as in “Sign in with Example Corp”",
  }),
} as const satisfies Settings;
