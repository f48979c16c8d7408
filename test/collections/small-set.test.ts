import { expect, test } from "vitest";
import { SmallSet } from "../../src/collections/small-set.ts";

test("visits every member once, and none that has gone", () => {
  const [a, b, c] = [{ name: "a" }, { name: "b" }, { name: "c" }];
  const set = new SmallSet<{ name: string }>().add(a).add(b).add(c);
  const visited = (): string[] => {
    const names: string[] = [];
    set.each(({ name }) => names.push(name));
    return names.sort();
  };
  expect(visited()).toEqual(["a", "b", "c"]);
  expect([set.delete(a), set.delete(a), set.delete(c)]).toEqual([true, false, true]);
  expect([set.size, visited()]).toEqual([1, ["b"]]);
  set.add(a);
  expect([set.size, visited()]).toEqual([2, ["a", "b"]]);
});

test("members may go while they are visited", () => {
  const members = [{}, {}, {}];
  const set = new SmallSet<object>();
  for (const member of members) {
    set.add(member);
  }
  let visits = 0;
  set.each((member) => {
    visits += 1;
    set.delete(member);
  });
  expect([visits, set.size]).toEqual([3, 0]);
});
