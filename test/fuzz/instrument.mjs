// Counts where the code of src/ has been: a counter at each branch, for a fuzzer that looks for inputs that reach new code.
import { readFileSync } from "node:fs";
import { parseSync, Visitor } from "oxc-parser";

/** Room for counters in coverage.ts. */
const MAX_POINTS = 32_768;

/** An esbuild plugin. `coverageFile`: the module that holds the counters. */
export function countingPlugin({ sourceFolder, coverageFile }) {
  let points = 0;
  return {
    name: "count-branches",
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        if (!path.startsWith(sourceFolder)) return undefined;
        const counted = withCounters(path, points);
        points = counted.points;
        if (points > MAX_POINTS)
          throw new RangeError(`Too many branches: ${points}, expected at most ${MAX_POINTS}`);
        const head = `import { hits as fuzzHits } from ${JSON.stringify(coverageFile)};`;
        return { contents: `${head}${counted.contents}`, loader: "ts" };
      });
    },
  };
}

function withCounters(path, firstPoint) {
  const source = readFileSync(path, "utf8");
  let points = firstPoint;
  /** `[offset, text]`, to be put into the source. */
  const added = [];
  const count = () => {
    points += 1;
    return `fuzzHits[${points - 1}]++`;
  };
  const countExpression = (node) => added.push([node.start, `(${count()},`], [node.end, ")"]);
  const countStatement = (node) => {
    // A block counts itself.
    if (node !== null && node.type !== "BlockStatement")
      added.push([node.start, `{${count()};`], [node.end, "}"]);
  };
  new Visitor({
    BlockStatement: (node) => added.push([node.start + 1, `${count()};`]),
    ArrowFunctionExpression: ({ body }) => {
      if (body.type !== "BlockStatement") countExpression(body);
    },
    ConditionalExpression: ({ consequent, alternate }) => {
      countExpression(consequent);
      countExpression(alternate);
    },
    LogicalExpression: ({ right }) => countExpression(right),
    IfStatement: ({ consequent, alternate }) => {
      countStatement(consequent);
      countStatement(alternate);
    },
    ForStatement: ({ body }) => countStatement(body),
    ForOfStatement: ({ body }) => countStatement(body),
    WhileStatement: ({ body }) => countStatement(body),
    SwitchCase: ({ consequent: [first] }) => {
      if (first !== undefined) added.push([first.start, `${count()};`]);
    },
  }).visit(parseSync(path, source).program);
  // Of one offset, what ends comes before what begins.
  added.sort(([a, one], [b, other]) => a - b || Number(isStart(one)) - Number(isStart(other)));
  let contents = "";
  let from = 0;
  for (const [at, text] of added) {
    contents += source.slice(from, at) + text;
    from = at;
  }
  return { contents: contents + source.slice(from), points };
}

function isStart(text) {
  return text !== ")" && text !== "}";
}
