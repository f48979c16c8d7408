import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { fields, jsonText, moment } from "../../src/cli/output.ts";
import {
  ListTokensResponseSchema,
  OrganizationSchema,
  TokenAccess,
  TokenKind,
} from "../../src/client/index.ts";

it("shows one thing with a field per line, without those that are empty", () => {
  expect(
    fields([
      ["id", "1"],
      ["description", ""],
      ["name", "x"],
    ]),
  ).toBe("id    1\nname  x");
});

it("writes moments to the minute", () => {
  expect(moment(timestampFromMs(Date.parse("2027-01-31T08:30:59Z")))).toBe("2027-01-31 08:30Z");
  expect(moment(undefined)).toBe("");
});

describe("JSON", () => {
  it("is spelled as in REST, with empty fields in it", () => {
    const list = create(ListTokensResponseSchema, {
      tokens: [
        {
          tokenId: "1",
          kind: TokenKind.PERSONAL,
          access: [TokenAccess.DEVELOPER_OPERATIONS, TokenAccess.PROTECTED_ENDPOINT],
        },
      ],
    });
    expect(JSON.parse(jsonText(ListTokensResponseSchema, list))).toMatchObject({
      tokens: [
        {
          token_id: "1",
          kind: "personal",
          access: ["developer_operations", "protected_endpoint"],
          all_deployments: false,
          deployments: [],
        },
      ],
      next_page_token: "",
    });
  });

  it("leaves out an enum that is not set", () => {
    const json = jsonText(OrganizationSchema, create(OrganizationSchema, { name: "acme" }));
    expect(JSON.parse(json)).not.toHaveProperty("role");
  });
});
