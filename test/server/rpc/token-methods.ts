/** The rows of TokenService. */
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import type { Cast } from "./callers.ts";
import type { TestPlatform } from "./platform.ts";
import { FOREIGN, named, type Row } from "./row.ts";
import { newToken } from "./world.ts";

/** Sooner than the tokens of the callers end: what lives longer, they may not make. */
const HALF_AN_HOUR_MS = 1_800_000;

async function tokenOf(platform: TestPlatform, cast: Cast) {
  const expiresAtMs = platform.now() + HALF_AN_HOUR_MS;
  const { tokenId } = await newToken(platform, cast.company, { expiresAtMs });
  return { ...named(cast), tokenId };
}

async function personalTokenOf(platform: TestPlatform, { company }: Cast) {
  const { userId } = company.admin;
  const expiresAtMs = platform.now() + HALF_AN_HOUR_MS;
  const options = { kind: "personal", userId, expiresAtMs } as const;
  const { tokenId } = await newToken(platform, company, options);
  return { organization: company.name, tokenId };
}

const changed = <Fields extends object>({ tokenId, ...rest }: Fields & { tokenId: string }) => ({
  ...rest,
  token: { tokenId, name: "renamed" },
});

const ADMINS_TOKEN: Row["except"] = {
  "a member": "ADMIN_REQUIRED",
  "a member's personal token": "ADMIN_REQUIRED",
  "an organization token": "ADMIN_REQUIRED",
  [FOREIGN]: "TOKEN_NOT_FOUND",
};

const SOMEBODYS_TOKEN: Row["except"] = {
  "a member": "TOKEN_NOT_FOUND",
  "a member's personal token": "TOKEN_NOT_FOUND",
  "an organization token": "TOKEN_NOT_FOUND",
  [FOREIGN]: "TOKEN_NOT_FOUND",
};

const token = TokenService.method;

const newTokenFields = {
  name: "made",
  access: ["TOKEN_ACCESS_DEVELOPER_OPERATIONS"],
  expiresAt: new Date(Date.now() + HALF_AN_HOUR_MS).toISOString(),
};

export const TOKEN_ROWS: readonly Row[] = [
  {
    method: token.createToken,
    variant: "a personal one",
    request: (_, cast) => ({ ...named(cast), ...newTokenFields }),
    except: { "an organization token": "ACCESS_DENIED" },
  },
  {
    method: token.createToken,
    variant: "the organization's",
    request: (_, cast) => ({
      ...named(cast),
      ...newTokenFields,
      kind: "TOKEN_KIND_ORGANIZATION",
    }),
    except: { ...ADMINS_TOKEN, [FOREIGN]: "ok" },
  },
  {
    method: token.getToken,
    variant: "the organization's",
    request: tokenOf,
    except: { [FOREIGN]: "TOKEN_NOT_FOUND" },
  },
  {
    method: token.getToken,
    variant: "an admin's own",
    request: personalTokenOf,
    except: SOMEBODYS_TOKEN,
  },
  { method: token.listTokens, request: (_, cast) => named(cast) },
  {
    method: token.updateToken,
    variant: "the organization's",
    request: async (platform, cast) => changed(await tokenOf(platform, cast)),
    except: ADMINS_TOKEN,
  },
  {
    method: token.updateToken,
    variant: "an admin's own",
    request: async (platform, cast) => changed(await personalTokenOf(platform, cast)),
    except: SOMEBODYS_TOKEN,
  },
  {
    method: token.deleteToken,
    variant: "the organization's",
    request: tokenOf,
    except: ADMINS_TOKEN,
  },
  {
    method: token.deleteToken,
    variant: "an admin's own",
    request: personalTokenOf,
    except: SOMEBODYS_TOKEN,
  },
  {
    method: token.rotateToken,
    variant: "the organization's",
    request: tokenOf,
    except: ADMINS_TOKEN,
  },
  {
    method: token.rotateToken,
    variant: "an admin's own",
    request: personalTokenOf,
    except: SOMEBODYS_TOKEN,
  },
  {
    method: token.revealToken,
    variant: "the organization's",
    request: tokenOf,
    except: { "a member": "ADMIN_REQUIRED", [FOREIGN]: "TOKEN_NOT_FOUND" },
  },
  {
    method: token.revealToken,
    variant: "an admin's own",
    request: personalTokenOf,
    outcome: "REVEAL_DISABLED",
    except: { "a member": "TOKEN_NOT_FOUND", [FOREIGN]: "TOKEN_NOT_FOUND" },
  },
];
