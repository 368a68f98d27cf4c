//! Places for the nodes of an acyclic graph, in layers from top to bottom (Sugiyama, Tagawa and Toda 1981): every edge
//! goes down, and nodes are as near to their readers as that allows; long edges pass through a point in each layer between; the order in a
//! layer follows the mean place of neighbours, which keeps crossings few.

/// What is to be placed: sizes of nodes, and edges from lower to higher indices.
pub(super) struct Diagram {
    /// Width and height of each node.
    pub(super) sizes: Vec<(f64, f64)>,
    /// From, to; `from < to`.
    pub(super) edges: Vec<(usize, usize)>,
}

/// Where everything is.
pub(super) struct Placed {
    /// The centre of each node.
    pub(super) centres: Vec<(f64, f64)>,
    /// The points that each edge goes through, in the order of the edges.
    pub(super) routes: Vec<Vec<(f64, f64)>>,
    /// The whole drawing.
    pub(super) size: (f64, f64),
}

/// Edges over more layers go straight instead of through points: points cost time, and such edges are crossed anyway.
const MOST_LAYERS: usize = 30;
/// Times that orders follow neighbours, down and up.
const SWEEPS: usize = 6;
/// Between nodes of a layer.
const GAP: f64 = 24.0;
/// Between layers.
const LAYER_GAP: f64 = 44.0;
/// The width of an edge that passes a layer.
const PASS: f64 = 8.0;

/// A node, or a point where an edge passes a layer.
struct Item {
    layer: usize,
    width: f64,
    height: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Places a diagram.
pub(super) fn place(diagram: &Diagram) -> Placed {
    let layers = layers(diagram);
    let mut items: Vec<Item> = diagram
        .sizes
        .iter()
        .zip(&layers)
        .map(|((width, height), layer)| Item {
            layer: *layer,
            width: *width,
            height: *height,
            x: 0.0,
            above: Vec::new(),
            below: Vec::new(),
        })
        .collect();
    let paths: Vec<Vec<usize>> = diagram.edges.iter().map(|edge| path(&mut items, *edge)).collect();
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |most| most + 1)];
    for (index, item) in items.iter().enumerate() {
        rows[item.layer].push(index);
    }
    for row in &mut rows {
        spread(&mut items, row, None);
    }
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let order: Vec<usize> =
            if down { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for layer in order {
            let wanted: Vec<f64> = rows[layer].iter().map(|i| wanted(&items, *i, down)).collect();
            let mut sorted: Vec<(f64, usize)> = wanted.into_iter().zip(rows[layer].iter().copied()).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[layer] = sorted.iter().map(|(_, i)| *i).collect();
            let wanted: Vec<f64> = sorted.iter().map(|(x, _)| *x).collect();
            spread(&mut items, &rows[layer], Some(&wanted));
        }
    }
    finish(diagram, &items, &rows, &paths)
}

/// The layer of each node.
fn layers(diagram: &Diagram) -> Vec<usize> {
    let n = diagram.sizes.len();
    let mut layers = vec![0; n];
    let mut edges = diagram.edges.clone();
    edges.sort_unstable();
    // Edges go up in index: when a node's are looked at, its own layer is final.
    for (from, to) in &edges {
        layers[*to] = layers[*to].max(layers[*from] + 1);
    }
    // A node with no more edges above than below goes down to its first reader: that makes edges shorter, or leaves
    // them as long. The last nodes first, so that chains move as a whole.
    let (mut above, mut below) = (vec![0usize; n], vec![Vec::new(); n]);
    for (from, to) in &edges {
        above[*to] += 1;
        below[*from].push(*to);
    }
    for node in (0..n).rev() {
        let first_reader = below[node].iter().map(|to: &usize| layers[*to]).min();
        if let Some(reader) = first_reader
            && above[node] <= below[node].len()
        {
            layers[node] = reader - 1;
        }
    }
    layers
}

/// The items that an edge goes through, its ends included; adds the points between.
fn path(items: &mut Vec<Item>, (from, to): (usize, usize)) -> Vec<usize> {
    let (start, end) = (items[from].layer, items[to].layer);
    let mut path = vec![from];
    if end.saturating_sub(start) <= MOST_LAYERS {
        for layer in start + 1..end {
            items.push(Item {
                layer,
                width: PASS,
                height: 0.0,
                x: 0.0,
                above: Vec::new(),
                below: Vec::new(),
            });
            path.push(items.len() - 1);
        }
    }
    path.push(to);
    for pair in path.windows(2) {
        items[pair[0]].below.push(pair[1]);
        items[pair[1]].above.push(pair[0]);
    }
    path
}

/// Where an item would like to be: in the middle of its neighbours on one side; else where it is.
fn wanted(items: &[Item], index: usize, down: bool) -> f64 {
    let item = &items[index];
    let neighbours = if down { &item.above } else { &item.below };
    match neighbours.len() {
        0 => item.x,
        n => neighbours.iter().map(|i| items[*i].x).sum::<f64>() / n as f64,
    }
}

/// Gives a row places in its order, without overlap, as near as that allows to those wanted.
fn spread(items: &mut [Item], row: &[usize], wanted: Option<&[f64]>) {
    let mut edge = f64::NEG_INFINITY;
    for (position, index) in row.iter().enumerate() {
        let half = items[*index].width / 2.0;
        let least = if edge.is_finite() { edge + GAP + half } else { half };
        let x = match wanted {
            Some(wanted) if !edge.is_finite() => wanted[position],
            Some(wanted) => wanted[position].max(least),
            None => least,
        };
        items[*index].x = x;
        edge = x + half;
    }
    // Pushing to the right only would let rows drift: the row goes back by the mean of what it was pushed.
    if let Some(wanted) = wanted
        && !row.is_empty()
    {
        let pushed = row.iter().zip(wanted).map(|(i, w)| items[*i].x - w).sum::<f64>() / row.len() as f64;
        row.iter().for_each(|i| items[*i].x -= pushed);
    }
}

/// Coordinates from zero, rows from top to bottom.
fn finish(diagram: &Diagram, items: &[Item], rows: &[Vec<usize>], paths: &[Vec<usize>]) -> Placed {
    let left = items.iter().map(|i| i.x - i.width / 2.0).fold(f64::INFINITY, f64::min).min(f64::MAX);
    let right = items.iter().map(|i| i.x + i.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let mut y = vec![0.0; items.len()];
    let mut top = GAP;
    for row in rows {
        let height = row.iter().map(|i| items[*i].height).fold(0.0, f64::max);
        row.iter().for_each(|i| y[*i] = top + height / 2.0);
        top += height + LAYER_GAP;
    }
    let at = |i: usize| (items[i].x - left + GAP, y[i]);
    let route = |path: &Vec<usize>| {
        let mut points: Vec<(f64, f64)> = path.iter().map(|i| at(*i)).collect();
        // From the lower side of one node to the upper side of the other.
        if let (Some(first), Some(from)) = (points.first_mut(), path.first()) {
            first.1 += items[*from].height / 2.0;
        }
        if let (Some(last), Some(to)) = (points.last_mut(), path.last()) {
            last.1 -= items[*to].height / 2.0;
        }
        points
    };
    let width = if items.is_empty() { 0.0 } else { right - left };
    Placed {
        centres: (0..diagram.sizes.len()).map(at).collect(),
        routes: paths.iter().map(route).collect(),
        size: (width + 2.0 * GAP, top + GAP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(nodes: usize, edges: &[(usize, usize)]) -> Diagram {
        Diagram { sizes: vec![(100.0, 40.0); nodes], edges: edges.to_vec() }
    }

    #[test]
    fn edges_go_down_and_nodes_of_a_layer_do_not_overlap() {
        let edges = [(0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (0, 5), (4, 5), (1, 5)];
        let placed = place(&diagram(6, &edges));
        for (from, to) in edges {
            assert!(placed.centres[from].1 < placed.centres[to].1, "{from} -> {to}");
        }
        for (i, a) in placed.centres.iter().enumerate() {
            for b in &placed.centres[..i] {
                assert!((a.1 - b.1).abs() > 1.0 || (a.0 - b.0).abs() >= 100.0 + GAP - 1e-6);
            }
        }
    }

    #[test]
    fn everything_lies_inside_the_drawing() {
        let placed = place(&diagram(5, &[(0, 1), (1, 2), (2, 3), (0, 3), (1, 4)]));
        let inside = |(x, y): (f64, f64)| x >= 0.0 && y >= 0.0 && x <= placed.size.0 && y <= placed.size.1;
        assert!(placed.centres.iter().chain(placed.routes.iter().flatten()).all(|p| inside(*p)));
        assert_eq!(placed.routes[3].len(), 4, "a point in each layer that a long edge passes");
    }

    #[test]
    fn a_chain_from_nowhere_is_drawn_right_above_its_reader() {
        let placed = place(&diagram(7, &[(0, 2), (2, 4), (4, 5), (5, 6), (1, 3), (3, 6)]));
        assert_eq!(placed.centres[3].1, placed.centres[5].1);
        assert_eq!(placed.centres[1].1, placed.centres[4].1);
    }

    #[test]
    fn nothing_is_placed_nowhere() {
        let placed = place(&diagram(0, &[]));
        assert!(placed.size.0.is_finite() && placed.size.1.is_finite());
    }

    #[test]
    fn a_chain_of_thousands_with_long_edges_takes_no_time() {
        let mut edges: Vec<(usize, usize)> = (1..4000).map(|i| (i - 1, i)).collect();
        edges.extend((1..4000).map(|i| (0, i)));
        edges.sort_unstable();
        edges.dedup();
        let start = std::time::Instant::now();
        place(&diagram(4000, &edges));
        assert!(start.elapsed().as_secs() < 10);
    }
}
