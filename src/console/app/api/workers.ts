/** How a worker on another machine joins a deployment. */

/**
 * The command for the other machine. Without a token it is for those who have one; labels
 * that may have any value are left to be filled in.
 */
export function joinCommand(
  deployment: string,
  token = "TOKEN",
  requires: Readonly<Record<string, string>> = {},
): string {
  const labels = Object.entries(requires).map(
    ([name, value]) => ` --label ${name}=${value === "*" ? "VALUE" : value}`,
  );
  return `TESSERA_WORKER_TOKEN=${token} npx tessera-platform worker --join ${location.origin} --deployment ${deployment}${labels.join("")}`;
}
