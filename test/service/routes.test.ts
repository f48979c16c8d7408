import { expect, it } from "vitest";
import { endpointAt, pathBelow } from "../../src/service/mounts.ts";
import { endpoint, manifestOf } from "./manifests.ts";

it("finds an endpoint by the path that its service gave it, and then by no other", () => {
  const manifest = manifestOf(
    endpoint({ name: "predict", route: "/v1/predict" }),
    endpoint({ name: "again", route: "/v1/predict" }),
    endpoint({ name: "second", route: "/predict" }),
    endpoint({ name: "moved", route: "/v1/moved" }),
    endpoint({ name: "plain" }),
  );
  const paths = ["/v1/predict", "/predict", "/plain", "/moved", "/second", "/v1", ""];
  expect(paths.map((path) => endpointAt(manifest, path))).toEqual([
    ...["predict", "second", "plain"],
    ...[undefined, undefined, undefined, undefined],
  ]);
});

it("writes a path as URLs have it", () => {
  const paths = ["/", "/größe", "/v1/model:predict", "/50%/a b"].map((route) =>
    pathBelow({ name: "x", route }, "submit"),
  );
  expect(paths).toEqual([
    "/submit",
    "/gr%C3%B6%C3%9Fe/submit",
    "/v1/model:predict/submit",
    "/50%25/a%20b/submit",
  ]);
  expect([pathBelow({ name: "x" }), pathBelow({ name: "x", route: "/" })]).toEqual(["/x", "/"]);
});
