// The catalogue of operations: every one forward and backward, with its formula, shapes, order of sums and source.
// Included in class bodies by ops.h, reference/reference.h, cpu/cpu.h and gpu/gpu.h, hence no include guard.
//
// The loops in reference/ define the operations down to the last rounding: each section names their file. Formulas say
// what is computed, and `Order` in which order its sums are.
//
// Arguments: outputs, inputs, dimensions. `d` prefixes a gradient. Gradients of parameters accumulate, from zeros that
// are never −0; gradients of activations are written unless Into::ADD says otherwise. B batch, T positions, D width, H
// hidden width, V vocabulary, N rows (B·T of a batch of sequences), Q queries: the newest of T positions, in training
// all. Matrices are row-major. All dimensions are at least 1.
//
// The orders of sums, referred to by name below (why: numerics.h):
//   lanes    a sum along a row: 32 lanes, lane l takes elements l, l+32, … in turn from zero; then lane l += lane l+16,
//            l+8, l+4, l+2, l+1
//   long     a sum of many numbers: `lanes` over each 1024 of them, then the same over those sums until one is left
//   chain    a product: per output one fma chain over ascending k from zero, cut every 1024 terms; the chunk sums
//            are added in ascending order to what the output starts from
//   ascending  one number after the other, from zero
//   largest  a > b ? a : b has no order but for zeros of unlike signs: the 32 lanes each keep the first of their
//            largest, and in each fold the lower lane's zero stays. A NaN is the largest where it is the first number;
//            elsewhere it is passed over
// Terms that do not exist (a position that is not seen, rows beyond an end) are left out, and a chain's cuts stay at
// multiples of 1024 of its index. A device may multiply some of them by zero instead: that changes no finite sum, but
// makes a NaN of an infinity.

// ---- Embedding ----------------------------------------------------------------------------------------------------
// Loops: reference/linear.cpp

// x_bt = token_table[tokens_bt] + position_table[first + t]
//   x (B,T,D) out; token_table (V,D); position_table (≥ first+T, D) or null; tokens (B,T)
OP(void embedding(real* x, const real* token_table, const real* position_table, const int32_t* tokens, int first, int B,
                  int T, int D));

// dtoken_table[v] += Σ_{b,t: tokens_bt = v} dx_bt;  dposition_table[t] += Σ_b dx_bt
//   Order: token table: the rows of dx in `chain` order as the one-hot product that this is (1·x is exact; a chunk of
//   1024 rows without v adds nothing, not even a zero); position table: ascending over b, cut every 1024 like a chain.
OP(void embedding_backward(real* dtoken_table, real* dposition_table, const real* dx, const int32_t* tokens, int B,
                           int T, int D, int V));

// x_bt = patches_bt + position_table[t], and behind them x_b,T−1 = cls + position_table[T−1]
//   x (B,T,D) out; patches (B,T−1,D); cls (D); position_table (T,D)
OP(void append_class_token(real* x, const real* patches, const real* cls, const real* position_table, int B, int T,
                           int D));

// dpatches_bt = dx_bt;  dcls += Σ_b dx_b,T−1;  dposition_table[t] += Σ_b dx_bt
//   dpatches (B,T−1,D) out
//   Order: ascending over b, cut every 1024 like a chain.
OP(void append_class_token_backward(real* dpatches, real* dcls, real* dposition_table, const real* dx, int B, int T,
                                    int D));

// y_n = weight[:, token_n] + bias: a linear layer of a one-hot input
//   y (N,out) out; weight (out,V); bias (out); tokens (N)
OP(void linear_one_hot(real* y, const real* weight, const real* bias, const int32_t* tokens, int64_t N, int V,
                       int out));

// dweight[:, v] += Σ_{n: token_n = v} dy_n;  dbias += Σ_n dy_n
//   Order: as linear_backward_weight of the one-hot input (see embedding_backward).
OP(void linear_one_hot_backward(real* dweight, real* dbias, const real* dy, const int32_t* tokens, int64_t N, int V,
                                int out));

// x_bt += position_table[first + t]
//   x (B,T,D) in place; position_table (≥ first+T, D)
OP(void add_positions(real* x, const real* position_table, int first, int B, int T, int D));

// dposition_table[t] += Σ_b dx_bt
//   Order: ascending over b, cut every 1024 like a chain.
OP(void add_positions_backward(real* dposition_table, const real* dx, int B, int T, int D));

// ---- Element by element -------------------------------------------------------------------------------------------
// Loops: reference/pointwise.cpp; of add_row_backward reference/linear.cpp

// y = factor · x        y (n) out, may be x
OP(void scale(real* y, const real* x, real factor, int64_t n));

// y_n = x_n + row
//   y (N,D) out; x rows of D, x_step numbers apart; row (D)
OP(void add_row(real* y, const real* x, int64_t x_step, const real* row, int64_t N, int D));

// drow += Σ_n dy_n
//   Order: as the bias of a linear layer: chain over the N rows, with plain additions.
OP(void add_row_backward(real* drow, const real* dy, int64_t N, int D));

// y_n = a_n + b_n
//   y rows of D out, y_step numbers apart, may be a where y_step is D; a, b (N,D)
OP(void add(real* y, int64_t y_step, const real* a, const real* b, int64_t N, int D));

// y = f(x)              y (n) out, may be x
OP(void pointwise(real* y, const real* x, Pointwise f, int64_t n));

// dx = dy ∘ f'(x), and y = f(x) once more, which then need not be saved
//   dx (n), may be dy; y (n) out or null; dy, x (n)
OP(void pointwise_backward(real* dx, real* y, const real* dy, const real* x, Pointwise f, int64_t n));

// ---- Linear -------------------------------------------------------------------------------------------------------
// Loops: reference/linear.cpp

// y = x Wᵀ + b, or y += x Wᵀ + b
//   y (N,out); x (N,in); weight (out,in); bias (out) or null
//   Order: chain over `in`, starting from y where Into::ADD; then + bias.
OP(void linear(real* y, const real* x, const real* weight, const real* bias, int64_t N, int in, int out, Into into));

// dx = dy W, or dx += dy W
//   Order: chain over `out`, starting from dx where Into::ADD.
OP(void linear_backward_input(real* dx, const real* dy, const real* weight, int64_t N, int in, int out, Into into));

// dweight += dyᵀ x;  dbias += Σ_n dy_n
//   dweight (out,in); dbias (out) or null
//   Order: chain over the N rows, the chunk sums added to what dweight holds; dbias the same with plain additions.
OP(void linear_backward_weight(real* dweight, real* dbias, const real* dy, const real* x, int64_t N, int in, int out));

// ---- Plain normalization ------------------------------------------------------------------------------------------
// Loops: reference/normalize.cpp

// y = (x − mean x) / std x along each row, with the biased variance, no ε and no parameters.   (Ba et al. 2016)
// A row whose variance comes out as 0, such as one of zeros, has no direction: it becomes zeros, and passes no gradient
// (inv_std 0); so does one whose squares overflow, |x − mean| above 1.8e19/√D. Of another constant row the rounding of
// its mean may leave an ulp or so, which is normalized like any row.
//   y (N,D) out, may be x; inv_std (N) out, 1/std
//   Order: lanes for the mean and for the variance about it.
OP(void normalize(real* y, real* inv_std, const real* x, int64_t N, int D));

// dx = inv_std · (dy − mean dy − y · mean(dy∘y)), or dx += that
//   dx (N,D), may be dy; y (N,D) what normalize wrote
//   Order: lanes.
OP(void normalize_backward(real* dx, const real* dy, const real* y, const real* inv_std, int64_t N, int D, Into into));

// y = x − mean x along each row; its own transpose, hence its own backward pass.
//   y (N,D) out, may be x
//   Order: lanes.
OP(void center(real* y, const real* x, int64_t N, int D));

// ---- Root mean square normalization ------------------------------------------------------- (Zhang and Sennrich 2019)
// Loops: reference/normalize.cpp

// y = weight ∘ x̂,  x̂ = inv_rms·x,  inv_rms = 1/√(mean x² + epsilon)
//   y (N,D) out; inv_rms (N) out; x (N,D); weight (D)
//   Order: lanes for the mean.
OP(void rms_norm(real* y, real* inv_rms, const real* x, const real* weight, real epsilon, int64_t N, int D));

// dx = inv_rms · (g − x̂ · mean(g∘x̂)) with g = weight∘dy, or dx += that;  dweight += Σ_n dy_n∘x̂_n
//   dx (N,D) may not be dy; dweight (D); x, inv_rms as in rms_norm
//   Order: lanes along the row; dweight by chain over the rows.
OP(void rms_norm_backward(real* dx, real* dweight, const real* dy, const real* x, const real* inv_rms,
                          const real* weight, int64_t N, int D, Into into));

// ---- Layer normalization ------------------------------------------------------------------------- (Ba et al. 2016)
// Loops: reference/normalize.cpp

// hat = (x − mean x) / √(variance + epsilon),  y = hat ∘ weight + bias, with the biased variance
//   y (N,D) out, may be x; hat (N,D) out, inv_std (N) out; weight, bias (D)
//   Order: lanes.
OP(void layer_norm(real* y, real* hat, real* inv_std, const real* x, const real* weight, const real* bias, real epsilon,
                   int64_t N, int D));

// y = hat ∘ weight + bias: what layer_norm wrote, once more
//   y (N,D) out; hat (N,D); weight, bias (D)
OP(void layer_norm_output(real* y, const real* hat, const real* weight, const real* bias, int64_t N, int D));

// With g = dy ∘ weight: dx = inv_std · (g − mean g − hat · mean(g∘hat)), or dx += that;
// dweight += Σ_n dy_n∘hat_n;  dbias += Σ_n dy_n
//   dx (N,D), may be dy; dweight, dbias (D); hat, inv_std as layer_norm wrote them
//   Order: lanes along a row; the rows in chunks of 1024, ascending, dweight by fma.
OP(void layer_norm_backward(real* dx, real* dweight, real* dbias, const real* dy, const real* hat, const real* inv_std,
                            const real* weight, int64_t N, int D, Into into));

// ---- Softmax attention ---------------------------------------------------- (Vaswani et al. 2017; Dao et al. 2022)
// Loops: reference/attention.cpp

// y_t = Σ_s a_ts v_s,  a_ts = exp(score_ts) / Σ_s' exp(score_ts'),  over the keys s' that t sees, with
// score_ts = (q_t·k_s + q_position_t·positions[t−s]) / √head_width + bias[t−s], for each head by itself
//   y (B,Q,width) out; top, inv_sum (B,heads,Q) out: all that the backward pass needs to form a_ts again
//   As computed: score_ts · log₂e = fma(dot, log₂e/√head_width, log₂e·bias); top_t is their maximum; e_ts =
//   exp2_in_range(max(−126, score_ts − top_t)); inv_sum_t = 1/Σ e_ts; y_t = inv_sum_t · Σ e_ts v_s. As the maximum
//   comes first (in the order `largest`), no sum is ever rescaled: decoding, tiles on the CPU and tiles on a GPU (which
//   form the scores twice) do the same.
//   Order: dots chain over the head's channels, the two added; Σ e lanes over s; Σ e v chain over ascending s.
OP(void attention(real* y, real* top, real* inv_sum, const AttentionInput& in, const AttentionShape& shape));

// Every key a query (Q = T = capacity). With da_ts = dy_t·v_s and ds_ts = a_ts (da_ts − Σ_c dy_tc y_tc):
//   dv_s = Σ_t a_ts dy_t;  dq_t = Σ_s ds_ts k_s / √head_width;  dk_s = Σ_t ds_ts q_t / √head_width
//   dbias[n] += Σ ds over the pairs at distance n
//   dq_position_t = Σ_n ds_t,t−n positions[n] / √head_width;  dpositions[n] = Σ ds q_position_t / √head_width over
//   those pairs
//   y, dy (B,T,width); a = e · inv_sum; nothing of size T² is saved
//   Order: da chain over the channels, dy·y lanes; sums over s, t or distances n chain, ascending, then the factor.
//   dbias and dpositions: each sample by itself first, dpositions as a chain over t and times the factor, dbias over
//   ascending t by uncut additions; then these over ascending b, from zero, and that sum is added to dbias, or is
//   dpositions.
OP(void attention_backward(const AttentionGradient& out, const real* dy, const real* y, const real* top,
                           const real* inv_sum, const AttentionInput& in, const AttentionShape& shape));

// bias[n] = −r1 log(1 + r2 n) of each head                                                    (Chi et al. 2022, KERPLE)
//   bias (T,heads) out; r1, r2 (heads)
OP(void kerple_bias(real* bias, const real* r1, const real* r2, int T, int heads));

// dr1 −= Σ_n dbias[n] log(1 + r2 n);  dr2 −= Σ_n dbias[n] r1 n / (1 + r2 n)
//   Order: lanes over n, by fma.
OP(void kerple_bias_backward(real* dr1, real* dr2, const real* dbias, const real* r1, const real* r2, int T,
                             int heads));

// ---- Sliding dilated attention ----------------------------------------------------------------- (regular_gpt, eq. 1)
// Loops: reference/dilated_attention.cpp

// y_j = Σ_i a_ji v_n,  n = first + j·advance − i·dilation for i = 0 … C−1,
// a_ji = softmax over i of q_j·k_n/√head_width + relative_i, for each head by itself. What stands before the sequence
// (n < 0) has k_before, v_before, or is left out where these are null.
//   y (B,Q,width) out; weights (B,Q,heads,C) out: a, 0 where left out
//   As computed: score · log₂e = fma(q·k, log₂e/√head_width, log₂e·relative);
//   e = exp2_in_range(max(−126, that less the largest)); a = e · (1/Σ e).
//   Order: q·k lanes; Σ e lanes over i; y chain, uncut, over ascending i, which is from the newest key to the oldest.
OP(void dilated_attention(real* y, real* weights, const DilatedInput& in, const DilatedShape& shape));

// With da_ji = dy_j·v_n and ds_ji = a_ji (da_ji − Σ_i' a_ji' da_ji'), for the pairs (j,i) of each key n:
//   dq_j = 1/√head_width Σ_i ds_ji k_n;  dk_n = 1/√head_width Σ ds_ji q_j;  dv_n = Σ a_ji dy_j;  dscores = ds
//   dy (B,Q,width); weights as dilated_attention wrote them. All T = capacity rows of dk and dv are written.
//   Order: da lanes, its mean lanes over i, by fma; dq, dk and dv chain over ascending i, uncut, then the factor;
//   dk_before and dv_before chain over ascending samples, then queries, then i, uncut.
OP(void dilated_attention_backward(const DilatedGradient& out, const real* dy, const real* weights,
                                   const DilatedInput& in, const DilatedShape& shape));

// y_bj = x_b,first+j·step       y (B,count,D) out; x (B,T,D)
OP(void take_rows(real* y, const real* x, int B, int T, int first, int step, int count, int D));

// x_b,first+j·step += y_bj      x (B,T,D); y (B,count,D)
OP(void add_to_rows(real* x, const real* y, int B, int T, int first, int step, int count, int D));

// ---- Attention without a softmax ---------- (Katharopoulos et al. 2020; positional_encodings_nonessential, section 4)
// Loops: reference/linear_attention.cpp

// y_t = Σ_s (q_t·k_s) v_s over the positions s that t sees, divided by Σ_s q_t·k_s where normalized, for each head by
// itself, with q and k as the feature map makes them:
//   y_t = inv_sum_t (Sᵀq_t + Σ_{s≤t} (q_t·k_s) v_s),  1/inv_sum_t = z·q_t + Σ_{s≤t} q_t·k_s
// over the s of t's own chunk, with the state of the chunks before: S = Σ_s k_s ⊗ v_s, z = Σ_s k_s.      (eqs. 7 and 8)
// The first chunk has no state, and no terms of it.
// Not causal: the state is that of all positions, and no sums within a chunk.
//   y (B,T,width) out; inv_sum (B,heads,T) out, or null where not normalized
//   qkv (B,T,3·width): q, k and v of a position side by side, each grouped by head; the feature map is applied in place
//   states (B,heads,states,state) out (see LinearAttentionShape). Null in decoding, which instead continues from state
//   (B,heads,decoder state) in and out. No part of it is read before the first position.
//   Order: q·k chain over the channels. Sums over s chain, ascending within a chunk, from zero (z: by additions), and
//   then added to what the chunks before have: S, z, and y from Sᵀq_t, a chain over the channels. For inv_sum lanes:
//   z·q_t over the channels by fma, then Σ q_t·k_s over the chunk's s. The exp of ELU_PLUS_ONE is exp_nonpositive
//   (numerics.h).
OP(void linear_attention(real* y, real* inv_sum, real* states, real* state, real* qkv,
                         const LinearAttentionShape& shape));

// The gradients of linear_attention over whole sequences. With g_t = inv_sum_t dy_t, c_t = −g_t·y_t, da_ts = g_t·v_s +
// c_t, and of the chunks after, L = Σ_t q_t ⊗ g_t and h = Σ_t c_t q_t (not causal: of all positions):
//   dq_t = S g_t + c_t z + Σ_{s≤t} da_ts k_s;  dk_s = L v_s + h + Σ_{t≥s} da_ts q_t;
//   dv_s = Lᵀk_s + Σ_{t≥s} (q_t·k_s) g_t
// Not normalized: g = dy, c = 0, no z and no h. Then dq and dk times the feature map's slope, min(φ, 1) for φ = elu +
// 1.
//   dqkv (B,T,3·width) out; dy (B,T,width) becomes g; inv_sum becomes c; qkv as linear_attention left it;
//   later: scratch, laid out as states
//   Order: c lanes by fma. The rest as in linear_attention, with L and h from the last chunk to the first, but
//   ascending within each, h by fma; c_t z by fma onto S g_t; not causal, L ascending too.
OP(void linear_attention_backward(real* dqkv, real* later, real* dy, const real* y, real* inv_sum, const real* states,
                                  const real* qkv, const LinearAttentionShape& shape));

// ---- Sliding cosine transform ------------------------------------------------- (mlps_for_nlp, section 5, appendix C)
// Loops: reference/dct.cpp

// c_ij = s_j Σ_m x_{i−t+1+m} cos(πj(2m+1)/(2t)), m = 0 … t−1, without positions before the start; s_0 = √(1/t), s_j =
// √(2/t): the first k coefficients of the orthonormal DCT-II of the t inputs up to i, channel by channel, with each
// head's own t and k.
//   c out, laid out as DctShape says: head by head (B,T,k,d); x (B,T,width)
//   state: null; or in decoding (B,state) in and out, which need not be set before the first position
//   Order: for r = i mod t, with the block of t positions that i is in and the one before (sliding_dct.h), places u = 0
//   … t−1 in each, θ_u = πju/t and φ_r = πj(2r+1)/(2t): sums of cos θ_u x_u and of sin θ_u x_u by fma from zero, over
//   the block before from its end down to place r + 1, S, and over i's own up to r, ascending, P; c = s_j sin φ_r ·
//   S_sin by fma onto s_j cos φ_r · S_cos, 0 for the last r and in the first block; to which (−1)^j s_j cos φ_r · P_cos
//   and (−1)^j s_j sin φ_r · P_sin are added in turn by fma.
OP(void sliding_dct(real* c, real* state, const real* x, const DctShape& shape));

// dx_s = Σ_j s_j Σ_i dc_ij cos(…) over the k frequencies and the positions i that see s
//   dx (B,T,width) out; dc laid out as c
//   Order: the same sums of dc over the block of s, from its end down to s, and over the next block, ascending, below
//   the place of s; dx one fma chain from zero: over ascending j with the former, cos then sin, then over ascending j
//   with the latter.
OP(void sliding_dct_backward(real* dx, const real* dc, const DctShape& shape));

// o_i = Σ_j W_jᵀ c_ij for each head by itself
//   o (B,T,width) out; c as sliding_dct wrote it; weight (heads,most,d,d), of which j ≥ k of a head is not read
//   Order: chain over (j, channel).
OP(void mix_frequencies(real* o, const real* c, const real* weight, const DctShape& shape));

// dc_ij = W_j do_i;  dW_j += Σ_i c_ij ⊗ do_i
//   dc out, laid out as c, may be c; do (B,T,width)
//   Order: dc chain over the channels; dW chain over the B·T rows.
OP(void mix_frequencies_backward(real* dc, real* dweight, const real* d_o, const real* c, const real* weight,
                                 const DctShape& shape));

// ---- The pairwise relation ------------------------------------------------- (causal_rn_workshop, eq. 4; section 2)
// Loops: reference/relation.cpp

// inv_std_ij = 1/std over the channels of a head of p_i + q_j, for centered p and q:  std² = |p_i + q_j|² / width.
//   inv_std (B,heads,Q,T) out, 0 where nothing is visible. p (B,capacity,H), q (B,Q,H), both centered per head
//   |p_i + q_j|² comes from |p_i|² + |q_j|² + 2 p_i·q_j. Where p_i ≈ −q_j that cancels: below CANCELLATION of
//   |p_i|² + |q_j|² the pair is summed directly. Equal and opposite vectors have inv_std 0.
//   Order: lanes for the squares and for the direct sum; chain over the head's channels for the dot product.
OP(void relation_inv_std(real* inv_std, const real* p, const real* q, const RelationShape& shape));

// shift_j = max over channels c and visible i of p_ic + q_jc: what `relation` takes off an exponent that is not
// normalized.
//   shift (B,Q) out; p (B,capacity,H), q (B,Q,H)
//   Order: the largest p_ic of each channel over ascending i, plus q_jc; of equal zeros the first, over ascending c.
OP(void relation_shift(real* shift, const real* p, const real* q, const RelationShape& shape));

// z_j = 1/n_j Σ_i ψ(inv_std_ij (p_i + q_j)) over the n_j visible keys
//   z (B,Q,H) out; inv_std (B,heads,Q,T) or null: 1; p (B,capacity,H), q (B,Q,H)
//   shift (B,Q) or null; with exp and without inv_std only: z_j is multiplied by exp(−shift_j), one factor for all
//   channels. A following plain normalization undoes it, and it keeps exp from overflow. It is taken off q_j before p_i
//   is added.
//   Order: ascending over i, then times 1/n_j.
OP(void relation(real* z, const real* inv_std, const real* shift, const real* p, const real* q,
                 const RelationShape& shape));

// The gradients of `relation` with every key a query (Q = T = capacity), through the inner norm where inv_std is given.
//   dp, dq (B,T,H) out; weight (B,heads,T,T) scratch, only with inv_std; dz (B,T,H) is multiplied by 1/n_j in place
//   With g_ij = dz_j∘ψ'(h_ij)/n_j, d_ij = p_i + q_j, w_ij = inv_std³/width Σ_c g_ij d_ij (the mean of g∘h times
//   inv_std²):
//     dp_i = center(Σ_j inv_std_ij g_ij) − p_i Σ_j w_ij − Σ_j w_ij q_j          without inv_std: dp_i = Σ_j g_ij
//     dq_j = center(Σ_i inv_std_ij g_ij) − q_j Σ_i w_ij − Σ_i w_ij p_i                           dq_j = Σ_i g_ij
//   As computed: g from dz as it then stands; w_ij = inv_std·inv_std·inv_std · (Σ_c g_ij d_ij / width); then, the same
//   for dq, dp_i = fma(−Σ_j w_ij, p_i, Σ_j inv_std_ij g_ij − its mean) − Σ_j w_ij q_j. d_ij = p_i + (q_j − shift_j)
//   where there is a shift.
//   Order: sums over i and over j ascending: of inv_std∘g by fma, of w and, without inv_std, of g by additions; over
//   channels lanes, Σ_c g d by fma; the products with w by chain.
OP(void relation_backward(real* dp, real* dq, real* weight, real* dz, const real* inv_std, const real* shift,
                          const real* p, const real* q, const RelationShape& shape));

// ---- The relation in linear time ------------------------------------------ (causal_rn_workshop, eq. 5; appendix A)
// Loops: reference/linear_relation.cpp

// z_j = 1/n_j exp(q_j) ∘ Σ_i exp(p_i) over the n_j visible positions i: `relation` with exp and without inv_std, in
// time and memory linear in T.
//   A sum of exp(p_i) is kept as a pair for each channel: m, the largest p_i, and s = Σ exp(p_i − m). One position is
//   (p_i, 1);
//     (m, s) + (m', s') = m' > m ? (m', fma(s, e, s')) : (m, fma(s', e, s)),   e = exp(−|m' − m|)
//   z_j = exp(q_j + m_j − shift_j) · s_j · 1/n_j; every exp of what is never positive is exp_nonpositive (numerics.h)
//   z (B,T,H) out; p, q (B,T,H)
//   shift (B,T) out, the largest q_j + m_j of all channels (see relation_shift); or null: none
//   sums (B,chunks,2,H) out: the pair, m then s, of all positions up to the end of each chunk. Null in decoding, which
//   instead continues from state (B,3,2,H) in and out: the pairs of all positions so far, of the unfinished chunk by
//   itself, and of the chunks before it. No part of it is read before its first position.
//   Order: a chunk's own sum takes its 64 positions in ascending order, from an empty one, (p, 0) of its first
//   position, and sums_k = sums_{k−1} + own_k. shift_j is `largest`, where of zeros the positive one.
//   (m_j, s_j) continues from sums_{k−1} with the positions of chunk k, ascending. Not causal: (m_j, s_j) is the last
//   of the sums.
OP(void linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                        const LinearRelationShape& shape));

// The gradients of linear_relation over whole sequences. With g_j = dz_j ∘ exp(q_j + m_j − shift_j) · 1/n_j
//   dq_j = g_j ∘ s_j,   dp_i = exp(p_i − m_i) ∘ A_i,   A_i = Σ_{j≥i} exp(m_i − m_j) ∘ g_j      (not causal: over all j)
//   dp, dq (B,T,H) out; dz, p, q (B,T,H); shift, sums as linear_relation wrote them
//   later (B,chunks,H) scratch: A beyond the chunk's last position, at the m of that position
//   Order: descending: A_i = g_i + A_{i+1}, which has come from m_{i+1} to m_i: times e of position i + 1 where that
//   raised m. Within chunk k it starts from later_k. A chunk's own sum does the same from zero, down to m_{k−1} of
//   sums_{k−1}: later_{k−1} = fma(later_k, exp(m_{k−1} − m_k), own_k). Not causal: Σ g ascending in chunks, from zero,
//   then over chunks.
OP(void linear_relation_backward(real* dp, real* dq, real* later, const real* dz, const real* shift, const real* sums,
                                 const real* p, const real* q, const LinearRelationShape& shape));

// ---- Mamba ------------------------------------------------------------------------ (Gu and Dao 2023, section 3.4)
// Loops: reference/convolution.cpp, reference/scan.cpp; of the gate reference/gates.cpp

// y = silu(v),  v_t = bias + Σ_k weight_k ∘ x_{t−K+1+k} for each channel by itself: the last tap is the current
// position.
//   y (B,T,C) out; x (B,T,C); weight (C,K); bias (C)
//   past (B,K−1,C): the inputs before the first, in order; replaced by the last K − 1 inputs. Null: zeros before the
//   start.
//   Order: v is one fma chain over ascending k from the bias, zeros included.
OP(void causal_convolution(real* y, real* past, const real* x, const real* weight, const real* bias, int B, int T,
                           int C, int K));

// The gradients of causal_convolution without a past. dv = dy ∘ silu'(v);  dx_t = Σ_k weight_k ∘ dv_{t+K−1−k};
// dweight_k += Σ_bt dv_bt ∘ x_b,t−K+1+k;  dbias += Σ_bt dv_bt
//   dx (B,T,C) out, not dy; dy (B,T,C) becomes dv
//   Order: dx by an fma chain over ascending k from zero, without positions after the last. dweight by chain over the
//   B·T rows, without inputs before the first; dbias the same with plain additions.
OP(void causal_convolution_backward(real* dx, real* dweight, real* dbias, real* dy, const real* x, const real* weight,
                                    const real* bias, int B, int T, int C, int K));

// The selective scan, for each channel by itself, with Δ = softplus(pre_step) and A = −exp(A_log):
//   h_t,s = exp(Δ_t A_s) h_t−1,s + Δ_t u_t B_t,s;  y_t = Σ_s h_t,s C_t,s + D u_t                     (eqs. 2a, 2b)
//   y (B,T,I) out; u, pre_step (B,T,I); A_log (I,S); B, C (S of them at every position, `row` numbers apart); D (I)
//   state (B,S,I): h before the first position, replaced by h after the last. Null: zeros before the start.
//   saved (B,segments,S,I) out or null: h before the first position of every segment, for the backward pass
//   exp(Δ A) is 2^max(Δ·(A·log₂e), −100): a factor of 2^-100 forgets as well as zero does, and makes no subnormal
//   numbers.
//   Order: over s one fma chain, ascending from zero, then D u by another fma. Δ u is rounded before it is multiplied
//   by B.
OP(void selective_scan(real* y, real* state, real* saved, const real* u, const real* pre_step, const real* A_log,
                       const real* B, const real* C, const real* D, const ScanShape& shape));

// The gradients of selective_scan from zeros before the start; models/mamba.cpp derives them.
//   du, dpre_step (B,T,I) out; dB, dC out, laid out as B and C; partial: scratch of shape.partial_size()
//   Order: for du and dpre_step over s one fma chain, ascending from zero. dB and dC over channels: each group of 32
//   (zeros beyond the last) as `lanes` folds it, the groups ascending. dA_log and dD: in each sample one fma chain over
//   t from the last position to the first, as the gradient of h comes by; the samples ascending from zero; dA_log +=
//   A·that by fma.
OP(void selective_scan_backward(real* du, real* dpre_step, real* dA_log, real* dB, real* dC, real* dD, real* partial,
                                const real* dy, const real* saved, const real* u, const real* pre_step,
                                const real* A_log, const real* B, const real* C, const real* D,
                                const ScanShape& shape));

// gated = y ∘ silu(z),  silu(z) = z σ(z)
//   gated (n) out, may be y or z; y, z (n)
OP(void silu_gate(real* gated, const real* y, const real* z, int64_t n));

// dy = dgated ∘ silu(z);  dz = dgated ∘ y ∘ silu'(z);  and gated once more, which then need not be saved
//   dy, dz (n) out; either may be dgated; gated (n) out
OP(void silu_gate_backward(real* dy, real* dz, real* gated, const real* dgated, const real* y, const real* z,
                           int64_t n));

// ---- Recurrent cells ------------------------------------------------ (Elman 1990; Hochreiter and Schmidhuber 1997)
// Loops: reference/gates.cpp

// h = tanh(z)
//   h (n) out, may be z; z (n)
OP(void tanh(real* h, const real* z, int64_t n));

// dz = dh ∘ (1 − h²)
//   dz (n) out, may be dh; dh, h (n)
OP(void tanh_backward(real* dz, const real* dh, const real* h, int64_t n));

// One step of an LSTM with forget gate (Gers et al. 2000):  c = σ(f)∘c_before + σ(i)∘tanh(g),  h = σ(o)∘tanh(c)
//   h, c (N,H) out; gates (N,4H): i, f, g and o side by side, which become their σ and tanh; c_before (N,H), not c
OP(void lstm_cell(real* h, real* c, real* gates, const real* c_before, int64_t N, int H));

// The gradients before σ and tanh, and with respect to c_before. With τ = tanh(c) and d = dc + dh∘o∘(1−τ²):
//   di = d∘g∘i∘(1−i);  df = d∘c_before∘f∘(1−f);  dg = d∘i∘(1−g²);  do = dh∘τ∘o∘(1−o);  dc_before = d∘f
//   dgates (N,4H) out, may be gates; dc (N,H): what later steps pass back to c; becomes dc_before
OP(void lstm_cell_backward(real* dgates, real* dc, const real* dh, const real* gates, const real* c,
                           const real* c_before, int64_t N, int H));

// ---- Loss ---------------------------------------------------------------------------------------------------------
// Loops: reference/loss.cpp

// losses_n = log Σ_v exp(logits_nv) − logits_n,target_n and dlogits_n = scale · (softmax(logits_n) − onehot(target_n));
// both zero where target_n = −1.
//   losses (N) out; dlogits (N,V) out, may be logits, or null; logits (N,V); targets (N)
//   Order: the row's maximum is taken off first; lanes for Σ exp.
OP(void cross_entropy(real* losses, real* dlogits, const real* logits, const int32_t* targets, real scale, int64_t N,
                      int V));

// losses_n = Σ_v (log(1 + exp(x_nv)) − sets_nv x_nv), binary cross-entropy against sets of correct classes;
// dlogits = scale · (sigmoid(x) − sets)
//   losses (N) out; dlogits (N,V) out or null; logits, sets (N,V), sets 0 or 1
//   Order: lanes. So far only tests call it.
OP(void binary_cross_entropy(real* losses, real* dlogits, const real* logits, const real* sets, real scale, int64_t N,
                             int V));

// losses_n = Σ_v (σ(x_nv) − sets_nv)², and dlogits = scale · 2 (σ(x) − sets) σ(x) (1 − σ(x)); an entry of sets below
// zero does not count, and its dlogits is 0
//   losses (N) out; dlogits (N,V) out or null; logits, sets (N,V)
//   Order: lanes.
OP(void sigmoid_squared_error(real* losses, real* dlogits, const real* logits, const real* sets, real scale, int64_t N,
                              int V));

// best_n = the lowest v with the largest logits_nv
//   best (N) out; logits (N,V)
OP(void argmax(int32_t* best, const real* logits, int64_t N, int V));

// sum = Σ x        sum (1) out; x (n); partial: scratch of at least ⌈n/1024⌉ + 1
//   Order: long.
OP(void sum(real* sum, real* partial, const real* x, int64_t n));

// ---- Optimizer ----------------------------------------------------------------------------------------------------
// Loops: reference/optimizer.cpp; of sum_of_squares reference/loss.cpp

// sum = Σ x²       as `sum`; x² by fma into the lane
OP(void sum_of_squares(real* sum, real* partial, const real* x, int64_t n));

// One step for n parameters. With c = min(1, clip/√gradient_square_sum), or 1 where clip is 0, and g = c·gradient:
//   m = β₁ m + (1−β₁) g;  v = β₂ v + (1−β₂) g²;
//   value −= learning_rate · (m/correction1 / (√(v/correction2) + ε) + weight_decay · value)
//   value, m, v (n) in place; gradient_square_sum (1), of all parameters of the model
OP(void adamw(real* value, real* m, real* v, const real* gradient, const real* gradient_square_sum,
              const AdamwStep& step, int64_t n));
