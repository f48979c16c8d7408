import { expect, it } from "vitest";
import { endpointAt } from "../../src/service/aliases.ts";
import { endpoint, manifestOf } from "./manifests.ts";

it("finds an endpoint by the path that its service gave it", () => {
  const manifest = manifestOf(
    endpoint({ name: "predict", route: "/v1/predict" }),
    endpoint({ name: "again", route: "/v1/predict" }),
    endpoint({ name: "plain" }),
  );
  const paths = ["/v1/predict", "/plain", "/predict", "/again", "/v1", ""];
  expect(paths.map((path) => endpointAt(manifest, path))).toEqual([
    ...["predict", "plain"],
    // By its name, which the router reads.
    ...[undefined, undefined],
    ...[undefined, undefined],
  ]);
});

it("finds the endpoint whose path it is before the one whose name it is", () => {
  const manifest = manifestOf(
    endpoint({ name: "predict", route: "/v1/predict" }),
    endpoint({ name: "predict_v2", route: "/predict" }),
    endpoint({ name: "run", route: "/predict_v2" }),
  );
  const paths = ["/predict", "/v1/predict", "/predict_v2"];
  expect(paths.map((path) => endpointAt(manifest, path))).toEqual(["predict_v2", "predict", "run"]);
});

it("finds the first of two endpoints with one path, whichever has it by its name", () => {
  const [first, second] = [
    endpoint({ name: "thief", route: "/plain" }),
    endpoint({ name: "plain" }),
  ];
  expect(endpointAt(manifestOf(first, second), "/plain")).toBe("thief");
  expect(endpointAt(manifestOf(second, first), "/plain")).toBe("plain");
});
