/**
 * What tests need of a machine besides the packages: a browser, Prometheus, Python, Go.
 * Where it is missing they are left out and say why; in CI, which installs all
 * of it (`.ci/run`), they fail, so that no run is green for having tried less.
 */

/** What to add to the name of tests that are left out, empty where nothing is missing. Throws in CI. */
export function leftOut(missing: string | undefined): string {
  if (missing === undefined) {
    return "";
  }
  if (process.env.CI) {
    throw new Error(`${missing}, and in CI no test is left out for that: see .ci/run`);
  }
  return ` (skipped: ${missing})`;
}
