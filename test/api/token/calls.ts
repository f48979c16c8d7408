/** What the tests of tokens call again and again, as an organization's admin. */
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import type { PlatformAnswer, TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany } from "../../server/rpc/world.ts";

export const DEVELOPER = ["TOKEN_ACCESS_DEVELOPER_OPERATIONS"];
export const ENDPOINT = ["TOKEN_ACCESS_PROTECTED_ENDPOINT"];
export const MONITORING = ["TOKEN_ACCESS_MONITORING"];

const DAY_MS = 24 * 3_600_000;

export class TokenCalls {
  readonly platform: TestPlatform;
  readonly company: Company;

  static async inNewCompany(platform: TestPlatform): Promise<TokenCalls> {
    return new TokenCalls(platform, await newCompany(platform));
  }

  private constructor(platform: TestPlatform, company: Company) {
    this.platform = platform;
    this.company = company;
  }

  inDays(days: number): string {
    return new Date(this.platform.now() + days * DAY_MS).toISOString();
  }

  /** By default a personal token with developer operations, for a day. */
  create(
    fields: object = {},
    headers: Readonly<Record<string, string>> = this.company.admin.headers,
  ): Promise<PlatformAnswer> {
    const message = { name: "ci", access: DEVELOPER, expiresAt: this.inDays(1), ...fields };
    return this.platform.call(TokenService.method.createToken, message, { headers });
  }

  /** The answer to the creation of an organization's token. */
  async organizationToken(fields: object = {}): Promise<PlatformAnswer["body"]> {
    return (await this.create({ kind: "TOKEN_KIND_ORGANIZATION", ...fields })).body;
  }

  /** Who a token's value stands for. */
  me(value: string, address?: string): Promise<PlatformAnswer> {
    return this.platform.rest("GET", "/api/v1/me", undefined, {
      headers: { authorization: `Bearer ${value}` },
      ...(address !== undefined && { address }),
    });
  }

  async audit(): Promise<{ action: string; subjectId: string; actor: string }[]> {
    const { headers } = this.company.admin;
    const method = OrganizationService.method.listAuditEvents;
    return (await this.platform.call(method, {}, { headers })).body.auditEvents;
  }
}
