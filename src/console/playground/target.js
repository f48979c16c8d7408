// @ts-check
/**
 * The deployment that is called. On a deployment's host it is that of the host; in the console the
 * address names it (`?deployment=acme/echo`), and the session of the person is used.
 */

/** Its full name; null where the host says which it is. */
export const deployment = new URLSearchParams(location.search).get("deployment");

/** @type {{url: string, authorization: boolean} | undefined} */
let known;

/** Headers that name the deployment. @returns {Record<string, string>} */
export function targetHeaders() {
  return deployment === null ? {} : { "tessera-deployment": deployment };
}

/**
 * Reads where others call the deployment, where this page is not there itself.
 * @param {(path: string) => Promise<any>} read
 */
export async function loadTarget(read) {
  if (deployment !== null) {
    const [organization = "", name = ""] = deployment.split("/");
    const query = new URLSearchParams({ organization });
    known = await read(`/api/v1/deployments/${encodeURIComponent(name)}?${query}`);
  }
}

/** Where others call the deployment. */
export function targetUrl() {
  return new URL(known?.url ?? location.origin);
}

/** True if they need a token for it, where this page has none itself. */
export function needsToken() {
  return known?.authorization ?? false;
}
