/** English spelling, as `LetterRules` reads it. Sounds that look the same (voiced or not) are not distinguished everywhere. */

export const ENGLISH = `
^(a)$ AX; ^(are)$ AA R; ^(any) EH N IY; m(any) EH N IY; ^(a)(bout|bove|cross|gain|go|head|lone|long|mong|round|way) AX
l(augh) AE F; (augh) AO; (au) AO; (aw) AO; s(ai)d EH; (air) EH R; (ai) EY; s(ay)s EH; (aye)$ AY; (ay) EY; (are)$ EH R
(alk) AO K; (all) AO L; h(al)[fv] AE; c(al)[fv] AE; (alm) AA M; (al)[td] AO L; w(a)s$ AH; wh(a)t AH; w(ar)[mndt] AO R
w(a)[nst] AA; qu(ar) AO R; qu(a)[ln] AA; (arr) AE R; (ar)[eiy] EH R; (ar) AA R; V[a-z]*(able)s?$ AX B AX L; (a)ble EY; V[a-z]*C(age)s?$ IH JH
h(a)ve AE; (a)nge EY; (a)ste EY; (a)tion EY; (a)[ct]i EY; (a)Ce[srd]?$ EY; (a)Cing$ EY; ^C+(a)C[iy]$ EY; V[a-z]*(a)[lnr]?$ AX
(a)$ AA; (a) AE
(bb) B; m(b)s?$; (b)t$; (b) B
s(ch)ool K; (ch)r K; te(ch) K; m(ach)in AX SH; (ch) CH; (ck) K; (cc)[eiy] K S; (cc) K; (ci)(a|ou|en) SH; s(c)[eiy]; (c)[eiy] S; (c) K
(dge) JH; (dg) JH; (dd) D; (d) D
^(eye)s? AY; b(eau)t Y UW; (eau) OW; p(eo)ple IY; m(e)thing; m(e)times; ^(e)very EH; h(ear)t AA R; b(ear) EH R; w(ear) EH R; (ear)[lnt] ER; (ear) IH R; gr(ea)t EY; br(ea)k EY
(ea)(d$|dy|lth|sure|ther|vy|nt|then) EH; id(ea) IY AX; r(ea)l IY AX; (ea) IY; (eer) IH R; b(ee)n IH; (ee) IY; (eigh) EY
c(ei) IY; h(ei)ght AY; th(ei)r EH; (ei)[nlg] EY; (ei) IY; th(ey) EY; (ey) IY; f(ew) Y UW; vi(ew) Y UW; n(ew) UW; (ew) UW
(eu) Y UW; ^th(e)$ AX; h(ere)$ IH R; (th)ere DH; th(ere) EH R; wh(ere) EH R; w(ere) ER; (err) EH R; v(er)y EH R; (er) ER
^w|^m|^h|^sh|^b(e)$ IY; [sxzcg]|ch|sh(es)$ IH Z; V[a-z]*C(es)$ Z; [td](ed)$ IH D; V[a-z]*[pkfshcx](ed)$ T
V[a-z]*(ed)$ D; V[a-z]*(e)(ly|ment|ful|less|ness)s?$; V[a-z]*C(e)$; V(e)$; (e)Ce$ IY; ^[brd](e)C[aeiou] IH; ^(e)v IY
V[a-z]*(e)[lnmr]s?$ AX; V[a-z]*(e)[ln]t$ AX; (e)$ IY; (e) EH
^o(f)$ V; (ff) F; (f) F
(gg) G; V(gh); (gh) G; (gn)$ N; ^(gn) N; ^(gu)[aei] G; (gue)$ G; (guage) G W IH JH; ^(g)(et|ive|ift|irl|ear) G; (g)[eiy] JH; (g) G
^(hour) AW ER; ^(hon)(or|our|est) AA N; (h)V HH; (h)
^(i)$ AY; (igh) AY; (ign)$ AY N; (i)(nd|ld)$ AY; ^[gl](i)v IH; (ique) IY K; (ire) AY ER; (ir) ER; fr(ie) EH; v(ie)w
^C+(ie)[sd]?$ AY; V[a-z]*(ied)$ IY D; (ie) IY; (io)us IY AX; (io)n Y AX; (io) IY OW; (ia)l IY AX; (ia)n IY AX; (ia) IY AX
(i)Ce[srd]?$ AY; (i)[cdklmnpstvz]ing$ AY; ^(i)(de|t[ei]|ron) AY; (i)$ IY; (i) IH
(j) JH; ^(kn) N; (kk) K; (k) K
C(le)s?$ AX L; (ll) L; (l) L; (mb)s?$ M; (mm) M; (m) M
(n)ge N; (ng)(le|er$|ry|u) NG G; (ng) NG; (nk) NG K; (nc)t NG K; (nn) N; ^autum(n)$; (n) N
^(one)s?$ W AH N; ^(once) W AH N S; thr(ough) UW; th(ough)$ OW; en(ough) AH F; [rt](ough) AH F; c(ough) AO F; (ough)t AO
(ough) OW; (oul)d UH; ^h?(our)s?$ AW ER; [yf](our) AO R; (our)n ER; V[a-z]*(ous)(ly|ness)?$ AX S; y(ou)ng AH; (you) Y UW; y(ou) UW
gr(ou)p UW; s(ou)p UW; c(ou)nt?r AH; c(ou)ple AH; t(ou)ch AH; d(ou)b AH; tr(ou)b AH; (ou) AW; (oor) AO R; bl(oo)d AH; fl(oo)d AH
(oo)k UH; [gw](oo)d UH; f(oo)t UH; (oo) UW; (oy) OY; (oi) OY; (oar) AO R; (oa) OW; d(oe)s AH; sh(oe) UW; (oe) OW
[dt](ow)n AW; br(ow)n AW; cr(ow) AW; p(ow)er AW; fl(ow)er AW; ^h|^n|^c|^w|all(ow)$ AW; (ow) OW; w(or)[dklsst] ER; (ore) AO R
V[a-z]*(or)s?$ ER; (or) AO R; ^t|^d|^wh|^int(o)$ UW; ^tw(o) UW; ^wh(o) UW; [sc](o)me AH; (o)ther AH; ^(o)ven AH; l(o)ve AH
ab(o)ve AH; m(o)n(ey|th|day|k) AH; ^s(o)n$ AH; [dn](o)ne AH; w(o)nder AH; fr(o)nt AH; fr(o)m AH; [mr](o)ve UW; l(o)se UW
w(o)men IH; w(o)man UH; g(o)ne AO; (o)(ld|ll|st|th)$ OW; [dw](o)n't OW; ^(o)nly OW; ^(o)(p|v)e OW; (o)Ce[srd]?$ OW
(o)[dklmnpstvz]ing$ OW; (o)$ OW; h(o)tel OW; m(o)m OW; V[a-z]*(o)n$ AX; (o) AA
(ph) F; (pp) P; ^(ps) S; ^(pn) N; (p) P; (que)$ K; (qu) K W; (q) K; ^(wr) R; (rrh) R; (rh) R; (rr) R; (r) R
(sch) S K; (sh) SH; (ssi)on SH; V(si)on ZH; (si)on SH; (su)re SH UH; V(s)u(al|re) ZH; (ss) S; (sc)[eiy] S; (stle)s?$ S AX L
(sten) S AX N; ^i(s)l; (s) S
(tion) SH AX N; (tia)l SH AX; (tiou)s SH AX; (ture)s?$ CH ER; (tch) CH; (tt) T; ^(th)(e|is|a[tn]|os|ough$|us) DH
(th)(er|e$) DH; (th) TH; (t) T
b(u)sy IH; b(ui)l IH; g(ui)[dl] AY; (ui) UW; b(uy) AY; g(u)[eiay]; ^(u)(s|ni|ti) Y UW; (ue)s?$ UW; s(ure) UH R; (ure) Y ER
[cfmbhp](u)C[ea] Y UW; p(u)[tls] UH; f(u)ll UH; (ur) ER; (u)Ce UW; [jlrsdt](u)C[aeiou] UW; (u) AH
(v) V; (who) HH UW; (wh) W; (wr) R; ans(w)er; s(w)ord; t(w)o; (w) W; ^(x) Z; (x) K S
^(y)V Y; ^C+(y)$ AY; C(y)[cpst]e AY; ^[mb](y) AY; (y)$ IY; V(y); (y) IH; (zz) Z; (z) Z
`;

/** For numbers that are written in digits. */
export const ENGLISH_DIGITS = "zero one two three four five six seven eight nine";
