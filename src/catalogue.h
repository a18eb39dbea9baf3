// The catalogue of operations: every one forward and backward, with its formula, shapes, order of sums and source.
// Included in class bodies by ops.h, cpu/cpu.h and gpu/gpu.h, hence no include guard.
//
// Arguments: outputs, inputs, dimensions. `d` prefixes a gradient. Gradients of parameters accumulate; gradients of
// activations are written unless Into::ADD says otherwise. B batch, T positions, D width, H hidden width, V vocabulary,
// N rows (B·T of a batch of sequences). Matrices are row-major.
//
// The orders of sums, referred to by name below (why: numerics.h):
//   lanes    a sum along a row: 32 lanes, lane l takes elements l, l+32, … in turn from zero; then lane l += lane l+16,
//            l+8, l+4, l+2, l+1
//   long     a sum of many numbers: `lanes` over each 1024 of them, then the same over those sums until one is left
//   chain    a product: per output one fma chain over ascending k from zero, cut every 1024 terms; the chunk sums
//            are added in ascending order to what the output starts from
//   ascending  one number after the other, from zero

// ---- Embedding ----------------------------------------------------------------------------------------------------

// x_bt = token_table[tokens_bt] + position_table[first + t]
//   x (B,T,D) out; token_table (V,D); position_table (≥ first+T, D) or null; tokens (B,T)
OP(void embedding(real* x, const real* token_table, const real* position_table, const int32_t* tokens, int first, int B,
                  int T, int D));

// dtoken_table[v] += Σ_{b,t: tokens_bt = v} dx_bt;  dposition_table[t] += Σ_b dx_bt
//   Order: token table: the rows of dx in `chain` order as the one-hot product that this is (1·x is exact, and a chunk
//   without v adds nothing); position table: ascending over b, cut every 1024 like a chain.
OP(void embedding_backward(real* dtoken_table, real* dposition_table, const real* dx, const int32_t* tokens, int B, int T,
                           int D, int V));

// x_bt = patches_bt + position_table[t], and behind them x_b,T−1 = cls + position_table[T−1]
//   x (B,T,D) out; patches (B,T−1,D); cls (D); position_table (T,D)
OP(void append_class_token(real* x, const real* patches, const real* cls, const real* position_table, int B, int T, int D));

// dpatches_bt = dx_bt;  dcls += Σ_b dx_b,T−1;  dposition_table[t] += Σ_b dx_bt
//   dpatches (B,T−1,D) out
//   Order: ascending over b, cut every 1024 like a chain.
OP(void append_class_token_backward(real* dpatches, real* dcls, real* dposition_table, const real* dx, int B, int T, int D));

// x_bt += position_table[first + t]
//   x (B,T,D) in place; position_table (≥ first+T, D)
OP(void add_positions(real* x, const real* position_table, int first, int B, int T, int D));

// dposition_table[t] += Σ_b dx_bt
//   Order: ascending over b, cut every 1024 like a chain.
OP(void add_positions_backward(real* dposition_table, const real* dx, int B, int T, int D));

// ---- Element by element -------------------------------------------------------------------------------------------

// y = factor · x        y (n) out, may be x
OP(void scale(real* y, const real* x, real factor, int64_t n));

// y_n = x_n + row
//   y (N,D) out; x rows of D, x_step numbers apart; row (D)
OP(void add_row(real* y, const real* x, int64_t x_step, const real* row, int64_t N, int D));

// drow += Σ_n dy_n
//   Order: as the bias of a linear layer, the rows in chunks of 1024.
OP(void add_row_backward(real* drow, const real* dy, int64_t N, int D));

// y_n = a_n + b_n
//   y rows of D out, y_step numbers apart; a, b (N,D)
OP(void add(real* y, int64_t y_step, const real* a, const real* b, int64_t N, int D));

// y = f(x)              y (n) out, may be x
OP(void pointwise(real* y, const real* x, Pointwise f, int64_t n));

// dx = dy ∘ f'(x), and y = f(x) once more, which then need not be kept
//   dx (n), may be dy; y (n) out or null; dy, x (n)
OP(void pointwise_backward(real* dx, real* y, const real* dy, const real* x, Pointwise f, int64_t n));

// ---- Linear -------------------------------------------------------------------------------------------------------

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

// y = (x − mean x) / std x along each row, with the biased variance, no ε and no parameters.   (Ba et al. 2016)
// A constant row has no direction: it becomes zeros, and passes no gradient (inv_std 0).
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

// ---- Layer normalization ------------------------------------------------------------------------- (Ba et al. 2016)

// hat = (x − mean x) / √(variance + 1e-5),  y = hat ∘ weight + bias, with the biased variance
//   y (N,D) out, may be x; hat (N,D) out, inv_std (N) out; weight, bias (D)
//   Order: lanes.
OP(void layer_norm(real* y, real* hat, real* inv_std, const real* x, const real* weight, const real* bias, int64_t N, int D));

// y = hat ∘ weight + bias: what layer_norm wrote, once more
//   y (N,D) out
OP(void layer_norm_output(real* y, const real* hat, const real* weight, const real* bias, int64_t N, int D));

// With g = dy ∘ weight: dx = inv_std · (g − mean g − hat · mean(g∘hat)), or dx += that;
// dweight += Σ_n dy_n∘hat_n;  dbias += Σ_n dy_n
//   dx (N,D), may be dy
//   Order: lanes along a row; the rows in chunks of 1024, ascending, dweight by fma.
OP(void layer_norm_backward(real* dx, real* dweight, real* dbias, const real* dy, const real* hat, const real* inv_std,
                            const real* weight, int64_t N, int D, Into into));

// ---- Softmax attention ---------------------------------------------------- (Vaswani et al. 2017; Dao et al. 2022)

// y_t = Σ_s a_ts v_s,  a_ts = exp(score_ts) / Σ_s exp(score_ts),  over the keys s that t sees, with
// score_ts = (q_t·k_s + q_position_t·positions[t−s]) / √head_width + bias[t−s], for each head by itself
//   y (B,Q,width) out; top, inv_sum (B,heads,Q) out: all that the backward pass needs to form a_ts again
//   As computed: score_ts · log₂e = fma(dot, log₂e/√head_width, log₂e·bias); top_t is their maximum; e_ts =
//   exp2_in_range(max(−126, score_ts − top_t)); inv_sum_t = 1/Σ e_ts; y_t = inv_sum_t · Σ e_ts v_s. As the maximum comes
//   first and has no order, no sum is ever rescaled: a stream, tiles on the CPU and tiles on a GPU (which form the scores
//   twice) do the same.
//   Order: dots chain over the head's channels, the two added; Σ e lanes over s; Σ e v chain over ascending s.
OP(void attention(real* y, real* top, real* inv_sum, const AttentionInput& in, const AttentionShape& shape));

// Every key a query (Q = T = capacity). With da_ts = dy_t·v_s and ds_ts = a_ts (da_ts − Σ_c dy_tc y_tc):
//   dv_s = Σ_t a_ts dy_t;  dq_t = Σ_s ds_ts k_s / √head_width;  dk_s = Σ_t ds_ts q_t / √head_width
//   dbias[n] += Σ ds over the pairs at distance n
//   dq_position_t = Σ_n ds_t,t−n positions[n] / √head_width;  dpositions[n] = Σ ds q_position_t / √head_width over those pairs
//   y, dy (B,T,width); a = e · inv_sum; nothing of size T² is kept
//   Order: da chain over the channels, dy·y lanes; sums over s, t or distances n chain, ascending, then the factor;
//   dbias and dpositions: a sample's sum first (dbias over ascending t by additions), then over ascending b.
OP(void attention_backward(const AttentionGradient& out, const real* dy, const real* y, const real* top, const real* inv_sum,
                           const AttentionInput& in, const AttentionShape& shape));

// bias[n] = −r1 log(1 + r2 n) of each head                                                      (Chi et al. 2022, KERPLE)
//   bias (T,heads) out; r1, r2 (heads)
OP(void kerple_bias(real* bias, const real* r1, const real* r2, int T, int heads));

// dr1 −= Σ_n dbias[n] log(1 + r2 n);  dr2 −= Σ_n dbias[n] r1 n / (1 + r2 n)
//   Order: lanes over n, by fma.
OP(void kerple_bias_backward(real* dr1, real* dr2, const real* dbias, const real* r1, const real* r2, int T, int heads));

// ---- The pairwise relation ------------------------------------------------- (causal_rn_workshop, eq. 4; section 2)

// inv_std_ij = 1/std over the channels of a head of p_i + q_j, for centered p and q:  std² = |p_i + q_j|² / width.
//   inv_std (B,heads,Q,T) out, 0 where nothing is visible. p (B,capacity,H), q (B,Q,H), both centered per head
//   |p_i + q_j|² comes from |p_i|² + |q_j|² + 2 p_i·q_j. Where p_i ≈ −q_j that cancels: below CANCELLATION of
//   |p_i|² + |q_j|² the pair is summed directly. Equal and opposite vectors have inv_std 0.
//   Order: lanes for the squares and for the direct sum; chain over the head's channels for the dot product.
OP(void relation_inv_std(real* inv_std, const real* p, const real* q, const RelationShape& shape));

// shift_j = max over channels c and visible i of p_ic + q_jc: what `relation` takes off an exponent that is not normalized.
//   shift (B,Q) out; p (B,capacity,H), q (B,Q,H)
OP(void relation_shift(real* shift, const real* p, const real* q, const RelationShape& shape));

// z_j = 1/n_j Σ_i ψ(inv_std_ij (p_i + q_j)) over the n_j visible keys
//   z (B,Q,H) out; inv_std (B,heads,Q,T) or null: 1; p (B,capacity,H), q (B,Q,H)
//   shift (B,Q) or null; with exp and without inv_std only: z_j is multiplied by exp(−shift_j), one factor for all channels.
//   A following plain normalization undoes it, and it keeps exp from overflow.
//   Order: ascending over i, then times 1/n_j.
OP(void relation(real* z, const real* inv_std, const real* shift, const real* p, const real* q, const RelationShape& shape));

// The gradients of `relation` with every key a query (Q = T = capacity), through the inner norm where inv_std is given.
//   dp, dq (B,T,H) out; weight (B,heads,T,T) scratch, only with inv_std; dz (B,T,H) is multiplied by 1/n_j in place
//   With g_ij = dz_j∘ψ'(h_ij)/n_j, d_ij = p_i + q_j, w_ij = inv_std³/width Σ_c g_ij d_ij (the mean of g∘h times inv_std²):
//     dp_i = center(Σ_j inv_std_ij g_ij) − p_i Σ_j w_ij − Σ_j w_ij q_j          without inv_std: dp_i = Σ_j g_ij
//     dq_j = center(Σ_i inv_std_ij g_ij) − q_j Σ_i w_ij − Σ_i w_ij p_i                           dq_j = Σ_i g_ij
//   Order: sums over i and over j ascending, by fma; over channels lanes; the products with w by chain.
OP(void relation_backward(real* dp, real* dq, real* weight, real* dz, const real* inv_std, const real* shift, const real* p,
                          const real* q, const RelationShape& shape));

// ---- The relation in linear time ------------------------------------------ (causal_rn_workshop, eq. 5; appendix A)

// z_j = 1/n_j exp(q_j) ∘ Σ_i exp(p_i) over the n_j visible positions i: `relation` with exp and without inv_std, in time and
// memory linear in T.
//   A sum of exp(p_i) is kept as a pair for each channel: m, the largest p_i, and s = Σ exp(p_i − m). One position is (p_i, 1);
//     (m, s) + (m', s') = m' > m ? (m', fma(s, e, s')) : (m, fma(s', e, s)),   e = exp(−|m' − m|)
//   z_j = exp(q_j + m_j − shift_j) · s_j · 1/n_j; every exp of what is never positive is exp_nonpositive (numerics.h)
//   z (B,T,H) out; p, q (B,T,H)
//   shift (B,T) out, the largest q_j + m_j of all channels (see relation_shift); or null: none
//   sums (B,chunks,2,H) out: the pair, m then s, of all positions up to the end of each chunk. Null in a stream, which instead
//   goes on with state (B,3,2,H) in and out: the pairs of all positions so far, of the unfinished chunk by itself, and of the
//   chunks before it. No part of it is read before its first position.
//   Order: a chunk's own sum takes its 64 positions in ascending from an empty one, and sums_k = sums_{k−1} + own_k. (m_j, s_j)
//   goes on from sums_{k−1} with the positions of chunk k, ascending. Not causal: (m_j, s_j) is the last of the sums.
OP(void linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                        const LinearRelationShape& shape));

// The gradients of linear_relation over whole sequences. With g_j = dz_j ∘ exp(q_j + m_j − shift_j)/n_j
//   dq_j = g_j ∘ s_j,   dp_i = exp(p_i − m_i) ∘ A_i,   A_i = Σ_{j≥i} exp(m_i − m_j) ∘ g_j      (not causal: over all j)
//   dp, dq (B,T,H) out; dz, p, q (B,T,H); shift, sums as linear_relation wrote them
//   later (B,chunks,H) scratch: A beyond the chunk's last position, at the m of that position
//   Order: descending: A_i = g_i + A_{i+1}, which has come from m_{i+1} to m_i: times e of position i + 1 where that raised m.
//   Within chunk k it starts from later_k. A chunk's own sum does the same from zero, down to m_{k−1} of sums_{k−1}:
//   later_{k−1} = fma(later_k, exp(m_{k−1} − m_k), own_k). Not causal: Σ g ascending in chunks, from zero, then over chunks.
OP(void linear_relation_backward(real* dp, real* dq, real* later, const real* dz, const real* shift, const real* sums,
                                 const real* p, const real* q, const LinearRelationShape& shape));

// ---- Loss ---------------------------------------------------------------------------------------------------------

// losses_n = log Σ_v exp(logits_nv) − logits_n,target_n and dlogits_n = scale · (softmax(logits_n) − onehot(target_n));
// both zero where target_n = −1.
//   losses (N) out; dlogits (N,V) out, may be logits, or null; targets (N)
//   Order: the row's maximum is taken off first; lanes for Σ exp.
OP(void cross_entropy(real* losses, real* dlogits, const real* logits, const int32_t* targets, real scale, int64_t N, int V));

// losses_n = Σ_v (log(1 + exp(x_nv)) − sets_nv x_nv), binary cross-entropy against sets of right answers;
// dlogits = scale · (sigmoid(x) − sets)
//   losses (N) out; dlogits (N,V) out or null; logits, sets (N,V), sets 0 or 1
//   Order: lanes.
OP(void binary_cross_entropy(real* losses, real* dlogits, const real* logits, const real* sets, real scale, int64_t N, int V));

// best_n = the lowest v with the largest logits_nv
//   best (N) out
OP(void argmax(int32_t* best, const real* logits, int64_t N, int V));

// sum = Σ x        sum (1) out; x (n); partial: scratch of at least ⌈n/1024⌉ + 1
//   Order: long.
OP(void sum(real* sum, real* partial, const real* x, int64_t n));

// ---- Optimizer ----------------------------------------------------------------------------------------------------

// sum = Σ x²       as `sum`; x² by fma into the lane
OP(void sum_of_squares(real* sum, real* partial, const real* x, int64_t n));

// One step for n parameters. With c = min(1, clip/√gradient_square_sum) and g = c·gradient:
//   m = β₁ m + (1−β₁) g;  v = β₂ v + (1−β₂) g²;
//   value −= learning_rate · (m/correction1 / (√(v/correction2) + ε) + weight_decay · value)
//   value, m, v (n) in place; gradient_square_sum (1), of all parameters of the model
OP(void adamw(real* value, real* m, real* v, const real* gradient, const real* gradient_square_sum, const AdamwStep& step,
              int64_t n));
