# The answers in ../wide_test.go: python3 wide.py 64x256,plus,5 256x16,king,4 ...
# prints size, rule, seed, nullity, fewest presses, how many solutions have as few, and the
# first 64 bits of the SHA-256 of board and least solution. It shares nothing with package
# solver: all presses are unknowns of one system over GF(2), an equation is a long number.
import sys, hashlib
M=2**64-1
def word(seed,n):
    z=(seed+(n+1)*0x9E3779B97F4A7C15)&M
    z=((z^z>>30)*0xBF58476D1CE4E5B9)&M
    z=((z^z>>27)*0x94D049BB133111EB)&M
    return z^z>>31
def drawn(seed,i,bits):
    W=(bits+63)//64
    return "".join(f"{word(seed,i*W+k):064b}" for k in range(W))[:bits]
ST={"plus":["010","111","010"],"king":["111"]*3,"x":["101","010","101"]}
def toggles(rule,R,C):
    torus=rule.endswith("-torus"); base=rule.removesuffix("-torus")
    st=ST[base] if base in ST else base.split(":")[1].split("/")
    press=[]
    for r in range(R):
        for c in range(C):
            m=0
            for a in range(3):
                for b in range(3):
                    if st[a][b]=="1":
                        y,x=r+a-1,c+b-1
                        if torus: m^=1<<((y%R)*C+x%C)
                        elif 0<=y<R and 0<=x<C: m^=1<<(y*C+x)
            press.append(m)
    return press
def run(R,C,rule,seed):
    n=R*C
    press=toggles(rule,R,C)
    eq=[0]*n
    for p,m in enumerate(press):
        k=m
        while k:
            b=k&-k; eq[b.bit_length()-1]|=1<<p; k^=b
    s=drawn(seed,0,n)
    board=0
    for p in range(n):
        if s[p]=="1": board^=press[p]
    piv={}
    for i in range(n):
        row=eq[i]|((board>>i&1)<<n)
        while row:
            c=(row&-row).bit_length()-1
            if c==n: raise SystemExit("impossible")
            q=piv.get(c)
            if q is None: piv[c]=row; break
            row^=q
    free=[c for c in range(n) if c not in piv]
    def back(x):
        for c in range(n-1,-1,-1):
            q=piv.get(c)
            if q is not None and (q&x).bit_count()&1: x|=1<<c
        return x&((1<<n)-1)
    sol=back(1<<n)
    null=[back(1<<f) for f in free]
    d=len(null)
    best=None; cnt=0; x=sol
    text=lambda v: f"{v:0{n}b}"[::-1]
    for g in range(1<<d):
        if g: x^=null[(g&-g).bit_length()-1]
        w=x.bit_count()
        if best is None or w<best[0]: best=(w,text(x)); cnt=1
        elif w==best[0]:
            cnt+=1; t=text(x)
            if t<best[1]: best=(w,t)
    bt=text(board)
    print(f"{R}x{C} {rule} {seed} {d} {best[0]} {cnt} {hashlib.sha256(bt.encode()).hexdigest()[:16]} {hashlib.sha256(best[1].encode()).hexdigest()[:16]}",flush=True)
for a in sys.argv[1:]:
    size,rule,seed=a.split(",")
    R,C=map(int,size.split("x"))
    run(R,C,rule,int(seed))
