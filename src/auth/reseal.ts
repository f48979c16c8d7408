/** Re-encrypts sealed values after a key rotation. */
import type { Page, PageQuery } from "../storage/accounts/page.ts";
import type { Tokens } from "../storage/accounts/tokens.ts";
import type { SecretStorage } from "../storage/hosting/secrets.ts";
import type { WebhookStorage } from "../storage/hosting/webhooks.ts";
import { deploymentSecretContext, type KeyRing, sealingContext, webhookContext } from "./keys.ts";

/** Rows read at once when secrets are sealed with a new key. */
const MAX_RESEALED_ROWS = 100;

interface ResealOptions {
  readonly accounts: Pick<Tokens, "listSealed" | "replaceSealed">;
  readonly hosting: Pick<SecretStorage, "listSealedSecrets" | "replaceSealedSecret"> &
    Pick<WebhookStorage, "listSealedWebhooks" | "replaceSealedWebhook">;
  readonly keys: KeyRing;
}

/** A stored sealed value, with how to replace it. */
interface Kept {
  readonly sealed: string;
  readonly context: string;
  replace(to: string): Promise<void>;
}

/**
 * Reseals every value of an older key under the current one, so that the older
 * key can be removed. It can be interrupted and started again. Returns how many
 * were resealed, and how many could not be opened; those stay as they are.
 */
export async function reseal({
  accounts,
  hosting,
  keys,
}: ResealOptions): Promise<{ readonly resealed: number; readonly unreadable: number }> {
  let resealed = 0;
  let unreadable = 0;
  for await (const { sealed, context, replace } of everySealed(accounts, hosting)) {
    if (keys.isSealCurrent(sealed)) {
      continue;
    }
    const plain = opened(keys, sealed, context);
    if (plain === undefined) {
      unreadable += 1;
    } else {
      await replace(keys.seal(plain, context));
      resealed += 1;
    }
  }
  return { resealed, unreadable };
}

async function* everySealed(
  accounts: ResealOptions["accounts"],
  hosting: ResealOptions["hosting"],
): AsyncGenerator<Kept, void, undefined> {
  for await (const token of everyItem((query) => accounts.listSealed(query))) {
    const { organizationId, tokenId, digest, sealed } = token;
    yield {
      sealed,
      context: sealingContext(organizationId, tokenId),
      replace: (to) => accounts.replaceSealed({ digest, from: sealed, to }),
    };
  }
  for await (const secret of everyItem((query) => hosting.listSealedSecrets(query))) {
    const { sealed, ...key } = secret;
    yield {
      sealed,
      context: deploymentSecretContext(key),
      replace: (to) => hosting.replaceSealedSecret({ ...key, from: sealed, to }),
    };
  }
  for await (const webhook of everyItem((query) => hosting.listSealedWebhooks(query))) {
    const { sealed, ...key } = webhook;
    yield {
      sealed,
      context: webhookContext(key),
      replace: (to) => hosting.replaceSealedWebhook({ ...key, from: sealed, to }),
    };
  }
}

async function* everyItem<Item>(
  list: (query: PageQuery) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  let after: string | undefined;
  do {
    const page = await list({ limit: MAX_RESEALED_ROWS, ...(after !== undefined && { after }) });
    yield* page.items;
    after = page.next;
  } while (after !== undefined);
}

function opened(keys: KeyRing, sealed: string, context: string): string | undefined {
  try {
    return keys.unseal(sealed, context);
  } catch {
    // It was changed, or its key is gone: it can no longer be revealed, but nothing
    // else is lost.
    return undefined;
  }
}
