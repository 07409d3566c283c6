import java.util.Arrays;
import java.util.Random;
import mpi.MPI;

/** Java Grande's Crypt (IDEA); see crypt.c. */
public final class Crypt {
    static final int KEYS = 52;
    static final int BLOCK = 8;
    static final int MASK = 0xffff;
    static final int[] SIZES = {3000000, 20000000, 50000000};

    private Crypt() {}

    static int mul(int a, int b) {
        if (a == 0) {
            return (1 - b) & MASK;
        }
        if (b == 0) {
            return (1 - a) & MASK;
        }
        int p = a * b;
        int low = p & MASK;
        int high = p >>> 16;
        return (low - high + (low < high ? 1 : 0)) & MASK;
    }

    /** The inverse of a number modulo 2^16 + 1, where 0 stands for 2^16. */
    static int inverse(int x) {
        long a = x == 0 ? 0x10000 : x;
        long b = 0x10001;
        long u = 1;
        long v = 0;
        while (b != 0) {
            long q = a / b;
            long t = a % b;
            a = b;
            b = t;
            t = u - q * v;
            u = v;
            v = t;
        }
        return (int) Math.floorMod(u, 0x10001L) & MASK;
    }

    static int[] encryptionKeys(int[] key) {
        int[] z = Arrays.copyOf(key, KEYS);
        for (int i = 8; i < KEYS; i++) {
            int at = i & 7;
            int a = at < 7 ? z[i - 7] : z[i - 15];
            int b = at < 6 ? z[i - 6] : z[i - 14];
            z[i] = (a << 9 | b >>> 7) & MASK;
        }
        return z;
    }

    static int[] decryptionKeys(int[] z) {
        int[] d = new int[KEYS];
        for (int round = 0; round <= 8; round++) {
            int from = 6 * (8 - round);
            int to = 6 * round;
            boolean swap = round > 0 && round < 8;
            d[to] = inverse(z[from]);
            d[to + 1] = -z[from + (swap ? 2 : 1)] & MASK;
            d[to + 2] = -z[from + (swap ? 1 : 2)] & MASK;
            d[to + 3] = inverse(z[from + 3]);
            if (round < 8) {
                d[to + 4] = z[from - 2];
                d[to + 5] = z[from - 1];
            }
        }
        return d;
    }

    static int word(byte[] p, int at) {
        return (p[at] & 0xff) << 8 | p[at + 1] & 0xff;
    }

    static void putWord(byte[] p, int at, int w) {
        p[at] = (byte) (w >>> 8);
        p[at + 1] = (byte) w;
    }

    static void cipher(byte[] from, byte[] to, int bytes, int[] k) {
        for (int at = 0; at < bytes; at += BLOCK) {
            int x1 = word(from, at);
            int x2 = word(from, at + 2);
            int x3 = word(from, at + 4);
            int x4 = word(from, at + 6);
            int i = 0;
            for (int round = 0; round < 8; round++, i += 6) {
                x1 = mul(x1, k[i]);
                x2 = (x2 + k[i + 1]) & MASK;
                x3 = (x3 + k[i + 2]) & MASK;
                x4 = mul(x4, k[i + 3]);
                int t2 = mul(x1 ^ x3, k[i + 4]);
                int t1 = mul((t2 + (x2 ^ x4)) & MASK, k[i + 5]);
                t2 = (t1 + t2) & MASK;
                x1 ^= t1;
                x4 ^= t2;
                t2 ^= x2;
                x2 = x3 ^ t1;
                x3 = t2;
            }
            putWord(to, at, mul(x1, k[i]));
            putWord(to, at + 2, x3 + k[i + 1]);
            putWord(to, at + 4, x2 + k[i + 2]);
            putWord(to, at + 6, mul(x4, k[i + 3]));
        }
    }

    static boolean knowsTheVector() {
        byte[] text = {0, 0, 0, 1, 0, 2, 0, 3};
        byte[] known = {0x11, (byte) 0xfb, (byte) 0xed, 0x2b, 0x01, (byte) 0x98, 0x6d, (byte) 0xe5};
        byte[] got = new byte[BLOCK];
        cipher(text, got, BLOCK, encryptionKeys(new int[] {1, 2, 3, 4, 5, 6, 7, 8}));
        return Arrays.equals(got, known);
    }

    public static void main(String[] args) {
        int n = SIZES[Grande.begin(args, "Crypt")];
        Random random = new Random(136506717);
        int[] key = new int[8];
        for (int i = 0; i < 8; i++) {
            key[i] = random.nextInt() & MASK;
        }
        byte[] text = new byte[Grande.rank == 0 ? n : 0];
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) i;
        }
        int[] z = encryptionKeys(key);
        int[] d = decryptionKeys(z);
        int[] counts = Grande.parts(n / BLOCK, BLOCK, true);
        int[] places = Grande.parts(n / BLOCK, BLOCK, false);
        int count = counts[Grande.rank];
        byte[] mine = new byte[count];
        byte[] ciphered = new byte[count];
        byte[] plain = new byte[count];
        byte[] back = new byte[text.length];
        double start = Grande.nowTogether();
        Grande.ALL.scatterv(text, counts, places, MPI.BYTE, mine, count, MPI.BYTE, 0);
        cipher(mine, ciphered, count, z);
        cipher(ciphered, plain, count, d);
        Grande.ALL.gatherv(plain, count, MPI.BYTE, back, counts, places, MPI.BYTE, 0);
        double took = Grande.slowestSince(start);
        Grande.finish(took, 2.0 * n, Grande.rank != 0 || Arrays.equals(text, back) && knowsTheVector());
    }
}
