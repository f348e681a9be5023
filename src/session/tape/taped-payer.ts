/** Who pays, with the tape between: whether they may is read, what they pay with is not. */

import type { ChargedUtterance, OpusAccount, Payer } from "../payer.ts";
import type { Tape } from "./tape.ts";

const FREE: ChargedUtterance = {
  end: () => undefined,
  undo: () => undefined,
  text: { add: () => undefined, takeBack: () => undefined },
};

export function tapedPayer(payer: Payer, tape: Tape): Payer {
  const { budget } = payer;
  if (budget === undefined) return payer;
  return {
    ...payer,
    budget: {
      begin: (characters) => {
        let charged = FREE;
        tape.read("begin", undefined, () => {
          charged = budget.begin(characters);
        });
        return tapedCharge(charged, tape);
      },
      add: (characters, utterance) => tape.read("add", undefined, () => budget.add(characters, utterance)),
    },
  };
}

function tapedCharge(charged: ChargedUtterance, tape: Tape): ChargedUtterance {
  return {
    end: () => charged.end(),
    undo: () => charged.undo(),
    text: {
      add: (characters) => tape.read("charge", undefined, () => charged.text.add(characters)),
      takeBack: (characters) => charged.text.takeBack(characters),
    },
  };
}

export function tapedOpusAccount({ id, begin }: OpusAccount, tape: Tape): OpusAccount {
  return {
    id,
    begin: () => {
      let end = (): void => undefined;
      tape.read("opus", undefined, () => {
        end = begin();
      });
      return () => end();
    },
  };
}
